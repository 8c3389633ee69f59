# SPDX-License-Identifier: Apache-2.0
"""All generated files."""
from . import (
    forms_atomic,
    forms_block,
    forms_compare,
    forms_control,
    forms_convert,
    forms_fault,
    forms_float,
    forms_integer,
    forms_matrix,
    forms_memory,
    forms_random,
    forms_space,
    forms_warp,
)

GROUPS = (
    forms_integer,
    forms_float,
    forms_convert,
    forms_compare,
    forms_matrix,
    forms_memory,
    forms_atomic,
    forms_warp,
    forms_control,
    forms_block,
    forms_space,
    forms_fault,
    forms_random,
)


def cases():
    for group in GROUPS:
        yield from group.cases()
