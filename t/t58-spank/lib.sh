# SPDX-License-Identifier: Apache-2.0
#
# lib.sh - test plugins: compiled against our headers, in a directory that only root can write to
#
# plugin NAME [required|optional] [ARGUMENT...]   a line of plugstack.conf; file=$R/record is added
# callbacks NAME                                  what was recorded of one callback, without its name
. "$(dirname "$0")/../lib.sh"
command -v "${CC:-cc}" >/dev/null || skip_all "no C compiler"
P=$(mktemp -d /run/spur-t58.XXXXXX 2>/dev/null) || skip_all "no directory that only root can write to (/run)"
chmod 755 "$P"
trap 'rm -rf "$P"; finish' EXIT
built=$SPUR_BUILD/src/compat/38
for source in "$HERE"/plugins/*.c; do
    name=$(basename "$source" .c)
    "${CC:-cc}" -shared -fPIC -Wall -Wno-unused-function -I "$built" -o "$P/$name.so" "$source" || { echo "Bail out! $source"; exit 1; }
done
R=$T/record
: >"$R" && chmod 666 "$R"
export SPUR_PLUGSTACK=$P/plugstack.conf
plugstack() { : >"$P/plugstack.conf"; }
plugin() { local name=$1 kind=${2:-required}; shift; [ $# -eq 0 ] || shift; echo "$kind $P/$name.so file=$R $*" >>"$P/plugstack.conf"; }
recorded() { awk -v call="$1" '$1 == call { $1 = ""; print substr($0, 2) }' "$R"; }
item() { recorded "$1" | awk -v item="$2" '$1 == item { $1 = ""; print substr($0, 2); exit }'; }
clear_record() { : >"$R"; }
seen() { [ -n "$(recorded "$1")" ]; }
