#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a llama with random weights as a GGUF file, for tries without a download: make_gguf.py FILE [LAYERS [WIDTH]] or
make_gguf.py FILE --shape tiny|gpt2|270m [--type f32|f16|q8_0]. gpt2 has the size of GPT-2 small (124 million parameters), 270m that of the smallest
models that people use. Needs the packages gguf and numpy from PyPI. Tokens are bytes and letters; what it says means nothing, but always the same."""
import argparse
import dataclasses

import gguf
import numpy as np

CONTEXT = 512
LETTERS = ["▁"] + [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["▁the", "▁a", "▁of", "er", "in"]


@dataclasses.dataclass
class Shape:
    layers: int = 2
    width: int = 256
    hidden: int = 0  # of the feed-forward part; 0: twice the width
    heads: int = 4
    tokens: int = 0  # 0: bytes and letters alone
    tied: bool = False  # the output is the embedding


SHAPES = {
    "tiny": Shape(),
    "gpt2": Shape(layers=12, width=768, hidden=2048, heads=12, tokens=50257, tied=True),
    "270m": Shape(layers=18, width=640, hidden=2048, heads=10, tokens=262144, tied=True),
}
TYPES = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
}


def add_tokens(writer, wanted):
    special = [b"<unk>", b"<s>", b"</s>"]
    of_bytes = [f"<0x{i:02X}>".encode() for i in range(256)]
    letters = [text.encode() for text in LETTERS]
    letters += [f"[{i}]".encode() for i in range(wanted - len(special) - len(of_bytes) - len(letters))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * len(of_bytes) + [gguf.TokenType.NORMAL] * len(letters)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(special + of_bytes + letters)
    writer.add_token_scores([0.0] * 3 + [-1000.0] * len(of_bytes) + [-float(i) for i in range(len(letters))])
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    return len(kinds)


def make(path, shape, type_name):
    random, hidden = np.random.default_rng(1), shape.hidden or 2 * shape.width
    quantised, file_type = TYPES[type_name]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_file_type(file_type)
    tokens = add_tokens(writer, shape.tokens)
    writer.add_vocab_size(tokens)
    parameters = 0

    def weights(name, rows, columns, scale=None):
        nonlocal parameters
        values = (random.standard_normal((rows, columns)) * (scale or columns ** -0.5)).astype(np.float32)
        parameters += values.size
        if type_name == "f32":
            writer.add_tensor(name + ".weight", values)
        else:
            writer.add_tensor(name + ".weight", gguf.quants.quantize(values, quantised), raw_dtype=quantised)

    def ones(name):
        writer.add_tensor(name + ".weight", np.ones(shape.width, np.float32))

    weights("token_embd", tokens, shape.width, None if shape.tied else 1.0)
    if not shape.tied:
        weights("output", tokens, shape.width)
    ones("output_norm")
    for layer in range(shape.layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{layer}.{name}", shape.width, shape.width)
        weights(f"blk.{layer}.ffn_gate", hidden, shape.width)
        weights(f"blk.{layer}.ffn_up", hidden, shape.width)
        weights(f"blk.{layer}.ffn_down", shape.width, hidden)
        ones(f"blk.{layer}.attn_norm")
        ones(f"blk.{layer}.ffn_norm")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return parameters


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("layers", nargs="?", type=int)
    parser.add_argument("width", nargs="?", type=int)
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--type", choices=TYPES, default="f32")
    arguments = parser.parse_args()
    chosen = dataclasses.replace(SHAPES[arguments.shape])
    chosen.layers = arguments.layers or chosen.layers
    chosen.width = arguments.width or chosen.width
    print(f"{arguments.file}: {make(arguments.file, chosen, arguments.type) / 1e6:.1f} million parameters")
