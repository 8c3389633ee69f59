#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a small llama with random weights as a GGUF file, for tries without a download: make_gguf.py FILE [LAYERS [WIDTH]].
Needs the packages gguf and numpy from PyPI. Its tokens are bytes and letters; what it says means nothing, but always the same."""
import sys

import gguf
import numpy as np

HEADS, CONTEXT = 4, 512
LETTERS = ["▁"] + [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["▁the", "▁a", "▁of", "er", "in"]


def add_tokens(writer):
    special = [b"<unk>", b"<s>", b"</s>"]
    of_bytes = [f"<0x{i:02X}>".encode() for i in range(256)]
    letters = [text.encode() for text in LETTERS]
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


def make(path, layers, width):
    random, hidden = np.random.default_rng(1), 2 * width
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // HEADS)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    tokens = add_tokens(writer)
    writer.add_vocab_size(tokens)

    def weights(name, rows, columns, scale=None):
        values = random.standard_normal((rows, columns)) * (scale or columns ** -0.5)
        writer.add_tensor(name + ".weight", values.astype(np.float32))

    def ones(name):
        writer.add_tensor(name + ".weight", np.ones(width, np.float32))

    weights("token_embd", tokens, width, 1.0)
    weights("output", tokens, width)
    ones("output_norm")
    for layer in range(layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{layer}.{name}", width, width)
        weights(f"blk.{layer}.ffn_gate", hidden, width)
        weights(f"blk.{layer}.ffn_up", hidden, width)
        weights(f"blk.{layer}.ffn_down", width, hidden)
        ones(f"blk.{layer}.attn_norm")
        ones(f"blk.{layer}.ffn_norm")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    make(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2, int(sys.argv[3]) if len(sys.argv) > 3 else 256)
