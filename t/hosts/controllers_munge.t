#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# controllers.t again, where MUNGE says who everybody is.
# seconds: 240
MUNGE=1 exec bash "$(dirname "$0")/controllers.t"
