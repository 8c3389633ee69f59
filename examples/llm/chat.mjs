// SPDX-License-Identifier: Apache-2.0
// Generates tokens with llama.cpp (node-llama-cpp from npm), greedily: node chat.mjs MODEL.gguf [cpu|cuda] [TOKENS] [PROMPT]
// Tokens go to stdout, times to stderr. On the virtual GPU:
//   farfault run --cuda-libraries FOLDER node chat.mjs tiny.gguf cuda
import {getLlama} from "node-llama-cpp";

const [path, device = "cuda", count = "24", prompt = "the cat of the house"] = process.argv.slice(2);
if (!path) {
  console.error("usage: node chat.mjs MODEL.gguf [cpu|cuda] [TOKENS] [PROMPT]");
  process.exit(64);
}
const llama = await getLlama({gpu: device === "cuda" ? "cuda" : false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath: path, gpuLayers: device === "cuda" ? "max" : 0});
const context = await model.createContext({contextSize: 128});
const sequence = context.getSequence();
const tokens = [];
const asked = model.tokenize(prompt);
const start = Date.now();
let first = start;
for await (const token of sequence.evaluate(asked, {temperature: 0})) {
  if (!tokens.length) first = Date.now();
  tokens.push(token);
  if (tokens.length >= Number(count)) break;
}
const end = Date.now();
const seconds = (from, to) => ((to - from) / 1000).toFixed(1);
console.log(tokens.join(" "));
console.error(`${tokens.length} tokens in ${seconds(start, end)} s (${asked.length} of the prompt and the first: ${seconds(start, first)} s), ${model.gpuLayers} layers on ${llama.gpu ? (await llama.getGpuDeviceNames())[0] : "the CPU"}`);
process.exit(0);
