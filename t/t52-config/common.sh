# SPDX-License-Identifier: Apache-2.0
# common.sh - the binary under test, also where the build has no bin/ yet
command -v spur >/dev/null || PATH="$SPUR_BUILD/src/cli:$PATH"
