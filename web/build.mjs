// SPDX-License-Identifier: Apache-2.0
// build.mjs MODULES PAGE: bundles src/main.js with what it uses of MODULES (a node_modules folder) and page.css into page.html, and writes
// the whole as PAGE. The page asks for nothing: its policy lets only this very script run, and no address be loaded.
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const [modules, page] = process.argv.slice(2).map((path) => resolve(path));
const { build } = createRequire(join(modules, 'x.js'))('esbuild');

// Returns the bundle's text and the packages that are in it.
async function bundle(entry) {
  const result = await build({
    entryPoints: [join(here, entry)],
    nodePaths: [modules],
    absWorkingDir: here,
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'iife',
    target: ['chrome100', 'firefox100', 'safari15'],
    charset: 'ascii',
    legalComments: 'none', // licences() below has the whole texts, once per package
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'warning',
  });
  const packages = new Set();
  for (const path of Object.keys(result.metafile.inputs)) {
    const parts = path.split('node_modules/').pop().split('/');
    if (path.includes('node_modules/')) packages.add(parts[0].startsWith('@') ? parts.slice(0, 2).join('/') : parts[0]);
  }
  return { text: result.outputFiles[0].text, packages: [...packages].sort() };
}

// The licence and notice of each package in the bundle, as one text.
async function licences(packages) {
  const texts = [];
  for (const name of packages) {
    const folder = join(modules, name);
    const about = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    texts.push(`==== ${name} ${about.version} (${about.license}) ====`);
    const inner = await readdir(join(folder, 'licenses')).catch(() => []);
    const files = [...(await readdir(folder)), ...inner.map((file) => `licenses/${file}`)]
      .filter((file) => /^(licenses\/)?(LICENSE|NOTICE)(\.\w+|-\w+)?$/.test(file))
      .sort();
    for (const file of files) texts.push((await readFile(join(folder, file), 'utf8')).trim());
    if (!files.length) throw new Error(`${name}: has no licence text`);
  }
  return texts.join('\n\n');
}

// Replaces the one place `{{name}}` of the page; the text may hold anything.
function fill(text, name, value) {
  const parts = text.split(`{{${name}}}`);
  if (parts.length !== 2) throw new Error(`page.html: {{${name}}} must be there once`);
  return parts.join(value);
}

const script = await bundle('src/main.js');
const style = await bundle('page.css');
if (/<\/script/i.test(script.text)) throw new Error('the bundle holds the end of its own element');
const hash = createHash('sha256').update(script.text).digest('base64');
const escapeHtml = (text) => text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);
let html = await readFile(join(here, 'page.html'), 'utf8');
html = fill(
  html,
  'policy',
  `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'`,
);
html = fill(html, 'style', style.text);
html = fill(html, 'licences', escapeHtml(await licences(script.packages)));
html = fill(html, 'script', script.text);
await mkdir(dirname(page), { recursive: true });
await writeFile(`${page}.new`, html);
await rename(`${page}.new`, page);
