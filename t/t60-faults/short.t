#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The short form of every fault run; `make faults` is the long one.
# seconds: 600
# alone
exec "$(dirname "$0")/../../tools/faults" --short
