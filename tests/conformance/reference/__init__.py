# SPDX-License-Identifier: Apache-2.0
"""The independent reference that the expectations of the conformance files come from."""
