#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the headers of one API number of libslurm, and what the library needs to agree with them.

usage: generate.py API FACTS OUT STAMP SOURCE...

FACTS holds the tables: structs.tsv (every field with type, offset and size), constants.tsv, functions.tsv,
refused.tsv. OUT gets slurm/slurm.h, slurm/slurmdb.h, slurm/slurm_errno.h, slurm/slurm_version.h,
slurm/spank.h for clients, and for the library itself members.h (which members the API has), protos.h,
layout.c (assertions on every sizeof and offsetof), free.c, unsupported.c and exports.map.

Functions that no SOURCE defines get a body that fails with ESLURM_NOT_SUPPORTED. That is allowed for public
functions without a known client (P3) and for rows of refused.tsv, which say why; others stop the build.
"""

import csv
import os
import re
import sys

RELEASE = {"38": ("22.05", "22.05.8", 0x160508), "42": ("24.11", "24.11.5", 0x180B05), "45": ("26.05", "26.05.5", 0x1A0505)}

# Other names of a struct.
ALIASES = {
    "job_info_t": "slurm_job_info_t",
    "update_part_msg_t": "partition_info_t",
    "step_alloc_info_msg_t": "slurm_selected_step_t",
    "srun_job_complete_msg_t": "slurm_step_id_t",
    "srun_ping_msg_t": "slurm_step_id_t",
}
OPAQUE = [
    "job_resources", "jobacctinfo", "sbcast_cred", "allocation_msg_thread", "slurm_step_ctx", "priority_factors",
]
ENUM_WORDS = ["slurmdb_acct_flags_t", "slurmdb_assoc_flags_t", "slurmdb_cluster_flags_t", "slurmdb_qos_flags_t", "update_mode_t"]

# How many strings an array of them has; absent: it ends in NULL.
COUNTS = {
    "gres_detail_str": "gres_detail_cnt", "environment": "env_size", "argv": "argc",
    "spank_job_env": "spank_job_env_size", "job_array_id": "job_array_count", "err_msg": "job_array_count",
    "rpc_dump_hostlist": "rpc_dump_count", "jobs_array": "jobs_cnt",
}
# Members that a record only borrows.
BORROWED = {
    ("slurmdb_assoc_rec_t", "user_rec"), ("slurmdb_hierarchical_rec_t", "assoc"), ("slurmdb_print_tree_t", "name"),
    ("slurm_step_launch_params_t", "argv"), ("slurm_step_launch_params_t", "env"),
    ("resource_allocation_response_msg_t", "working_cluster_rec"),
}
# Structs whose members a function of the library frees.
ARRAYS = {  # container: (array, count)
    "job_info_msg_t": ("job_array", "record_count"),
    "node_info_msg_t": ("node_array", "record_count"),
    "partition_info_msg_t": ("partition_array", "record_count"),
    "reserve_info_msg_t": ("reservation_array", "record_count"),
    "job_step_info_response_msg_t": ("job_steps", "job_step_count"),
    "license_info_msg_t": ("lic_array", "num_lic"),
    "topo_info_response_msg_t": ("topo_array", "record_count"),
    "trigger_info_msg_t": ("trigger_array", "record_count"),
    "front_end_info_msg_t": ("front_end_array", "record_count"),
    "job_state_response_msg_t": ("jobs", "jobs_count"),
    "burst_buffer_info_msg_t": (None, None),
}


def fail(text):
    sys.exit("generate.py: " + text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


class Facts:
    def __init__(self, api, folder):
        self.api = api
        self.structs = {}  # name: [(field, type, offset, size)], by offset
        self.sizes = {}
        self.headers = {}
        self.union = {}  # name: every field of any API
        for row in read(os.path.join(folder, "structs.tsv")):
            name, field = row["struct"], row["field"]
            self.headers[name] = row["header"]
            if field == "(whole)":
                self.union.setdefault(name, [])
                if row["type_" + api] != "-":
                    self.structs[name] = []
                    self.sizes[name] = int(row["size_" + api])
                continue
            self.union[name].append(field)
            if row["type_" + api] != "-":
                self.structs[name].append(
                    (field, row["type_" + api], int(row["offset_" + api]), int(row["size_" + api])))
        for fields in self.structs.values():
            fields.sort(key=lambda f: (f[2], -f[3]))
        self.constants = [(r["name"], r["header"], r["kind"], r["value_" + api])
                          for r in read(os.path.join(folder, "constants.tsv")) if r["value_" + api] != "-"]
        self.functions = [r for r in read(os.path.join(folder, "functions.tsv"))]
        self.refused = {r["symbol"]: r["why"] for r in read(os.path.join(folder, "refused.tsv"))}

    def exported(self):
        for row in self.functions:
            if row["sig_" + self.api] != "-":
                yield row["symbol"], row["kind"], row["sig_" + self.api], row["header"], row["priority"]


# ---- types ----

def tag(name):
    return name[:-2] if name.endswith("_t") else name


def c_type(facts, word):
    """The type as C has it: structs that are named by tag, pointers apart."""
    word = word.strip()
    match = re.match(r"^(const )?([A-Za-z_][A-Za-z_0-9 ]*?)\s*(\**)$", word)
    if not match:
        return word
    const, base, stars = match.group(1) or "", match.group(2), match.group(3)
    if base == "_Bool":
        base = "bool"
    elif not base.endswith("_t") and any(tag(s) == base for s in facts.structs):
        base = "struct " + base
    elif facts.api != "38" and base in ("List", "ListIterator"):
        base, stars = {"List": "list_t", "ListIterator": "list_itr_t"}[base], stars + "*"
    elif facts.api != "38" and base == "hostlist_t" and not stars:
        stars = "*"
    elif facts.api == "38" and base in ("list_t", "list_itr_t") and stars:
        base, stars = {"list_t": "List", "list_itr_t": "ListIterator"}[base], stars[1:]
    return const + base + (" " + stars if stars else "")


def declare(facts, type_word, name):
    """A member or parameter of that type and name."""
    match = re.match(r"^(.*)\(\*\)\((.*)\)$", type_word)
    if match:
        inner = ", ".join(c_type(facts, w) for w in split_args(match.group(2))) or "void"
        return "%s (*%s)(%s)" % (match.group(1).strip(), name, inner)
    match = re.match(r"^(.*)\[(\d*)\]$", type_word)
    if match:
        return "%s %s[%s]" % (c_type(facts, match.group(1)), name, match.group(2))
    text = c_type(facts, type_word)
    return text + ("" if text.endswith("*") else " ") + name


def split_args(text):
    out, depth, begin = [], 0, 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            out.append(text[begin:i].strip())
            begin = i + 1
    if text[begin:].strip():
        out.append(text[begin:].strip())
    return out


def parse_signature(facts, signature):
    """(result, [(declaration, name)], varargs) of "int (uint32_t job_id, ...)"."""
    at = signature.index("(")
    result, inside = signature[:at].strip(), signature[at + 1:signature.rindex(")")]
    args, varargs = [], False
    for number, arg in enumerate(split_args(inside)):
        if arg == "void":
            continue
        if arg == "...":
            varargs = True
            continue
        match = re.match(r"^(.*\(\*\)\(.*\))\s*(\w*)$", arg)
        if match:
            kind, name = match.group(1), match.group(2)
        else:
            match = re.match(r"^(.*?[\s*])(\w+)(\[\])?$", arg)
            words = arg.replace("*", " ").split()
            plain = [w for w in words if w not in ("const", "enum", "struct", "unsigned", "long")]
            if match and len(plain) > 1:
                kind, name = match.group(1).strip() + (match.group(3) or ""), match.group(2)
            else:
                kind, name = arg, ""
        name = name or "arg%d" % number
        if name in ("time", "string", "signal"):
            name += "_"
        args.append((declare(facts, kind, name), name))
    return c_type(facts, result), args, varargs


def prototype(facts, symbol, signature):
    result, args, varargs = parse_signature(facts, signature)
    words = [a for a, _ in args] + (["..."] if varargs else [])
    return "%s%s%s(%s)" % (result, "" if result.endswith("*") else " ", symbol, ", ".join(words) or "void")


# ---- headers ----

HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
/*
 * %s - written by src/compat/generate.py for API number %s (release %s)
 */
"""


def write_constants(facts, header, out):
    enums, anon = {}, []
    for name, where, kind, value in facts.constants:
        if where != header:
            continue
        if kind == "#define":
            text = value
            if re.match(r"^-?\d+$", value):
                number = int(value)
                if number < -2147483648 or number > 2147483647:
                    text = "0x%xu" % number if 0 <= number <= 0xffffffff else "((uint64_t)0x%xull)" % (number & (2**64 - 1))
                elif number < 0:
                    # INFINITE64 and NO_VAL64 are printed as signed numbers
                    text = "((uint64_t)0x%xull)" % (number & (2**64 - 1)) if name.endswith("64") else "(%d)" % number
                elif name.startswith(("NO_VAL", "INFINITE")):
                    text = "((uint%s_t)0x%x)" % (re.search(r"(\d*)$", name).group(1) or "32", number)
            out.append("#define %s %s" % (name, text))
        elif kind == "(anon)":
            anon.append((name, value))
        else:
            enums.setdefault(kind, []).append((name, value))
    if anon:
        out.append("enum {")
        for name, value in anon:
            number = int(value)
            if -2147483648 <= number <= 2147483647:
                out.append("    %s = %d," % (name, number))
        out.append("};")
        for name, value in anon:
            number = int(value)
            if not -2147483648 <= number <= 2147483647:
                out.append("#define %s %s" % (name, "0x%xu" % number if number <= 0xffffffff and number > 0 else "((uint64_t)0x%xull)" % (number & (2**64 - 1))))
    for kind, rows in enums.items():
        out.append("enum %s {" % kind)
        for name, value in rows:
            number = int(value)
            out.append("    %s = %s," % (name, "0x%xu" % number if number > 2147483647 else number))
        out.append("};\ntypedef enum %s %s_t;" % (kind, kind))


def by_value(facts, name):
    for _, word, _, _ in facts.structs[name]:
        base = re.sub(r"\[\d+\]$", "", word)
        if base in facts.structs:
            yield base


def write_structs(facts, header, out, skip=()):
    done = set(n for n in facts.structs if facts.headers[n] != header)

    def emit(name):
        if name in done:
            return
        done.add(name)
        for other in by_value(facts, name):
            emit(other)
        if name in skip:
            return
        out.append("struct %s {" % tag(name))
        nested = None
        for field, word, _, _ in facts.structs[name]:
            if "." in field:
                continue
            if word == "anonymous struct":
                inside = [f for f in facts.structs[name] if f[0].startswith(field + ".")]
                if not inside:
                    fail("%s.%s has no members" % (name, field))
                out.append("    struct {")
                for sub, sub_word, _, _ in inside:
                    out.append("        %s;" % declare(facts, sub_word, sub.split(".")[1]))
                out.append("    } %s;" % field)
                continue
            out.append("    %s;" % declare(facts, word, field))
        out.append("};")

    for name in facts.structs:
        if facts.headers[name] == header:
            emit(name)


def write_functions(facts, header, out):
    for symbol, kind, signature, where, _ in facts.exported():
        if where != header:
            continue
        if kind == "data":
            word = signature.split(":", 1)[1].strip()
            out.append("extern %s;" % declare(facts, word, symbol))
        else:
            out.append("extern %s;" % prototype(facts, symbol, signature))


LISTS_38 = """typedef struct xlist *List;
typedef struct listIterator *ListIterator;
typedef struct hostlist *hostlist_t;
typedef struct hostset *hostset_t;
"""
LISTS_42 = """typedef struct xlist list_t;
typedef struct listIterator list_itr_t;
typedef struct hostlist hostlist_t;
typedef struct hostset hostset_t;
"""
SUBMIT = """
/*
 * slurm_submit_batch_job(&desc, &answer) takes the address of a submit_response_msg_t pointer, as in Slurm, or
 * the address of a uint32_t, which gets the number of the job.
 */
extern int spur_submit_batch_job_id(job_desc_msg_t *job_desc_msg, uint32_t *job_id);
#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(SPUR_COMPAT_BUILD)
#define slurm_submit_batch_job(desc, answer) \\
    _Generic((answer), uint32_t *: spur_submit_batch_job_id, default: slurm_submit_batch_job)(desc, answer)
#elif defined(__cplusplus)
} /* overloads are not of C */
static inline int slurm_submit_batch_job(job_desc_msg_t *desc, uint32_t *job_id)
{
    return spur_submit_batch_job_id(desc, job_id);
}
extern "C" {
#endif
"""


def begin(facts, name):
    release = RELEASE[facts.api]
    guard = "SPUR_COMPAT_" + name.upper().replace(".", "_")
    return [HEAD % ("slurm/" + name, facts.api, release[0]), "#ifndef %s\n#define %s\n" % (guard, guard)]


def finish(out):
    out.append("#ifdef __cplusplus\n}\n#endif\n\n#endif\n")
    return "\n".join(out)


EXTERN_C = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"


def header_errno(facts):
    out = begin(facts, "slurm_errno.h")
    out.append("#include <errno.h>\n#include <inttypes.h>\n\n" + EXTERN_C)
    write_constants(facts, "slurm_errno.h", out)
    write_structs(facts, "slurm_errno.h", out)
    if "slurm_errtab_t" in facts.structs:
        out.append("typedef struct slurm_errtab slurm_errtab_t;")
    write_functions(facts, "slurm_errno.h", out)
    return finish(out)


def header_version(facts):
    _, full, number = RELEASE[facts.api]
    out = begin(facts, "slurm_version.h")
    out.append("#define SLURM_VERSION_NUMBER 0x%06x" % number)
    out.append("#define SLURM_VERSION_STRING \"%s\"" % full)
    out.append("#define SLURM_VERSION_NUM(a, b, c) (((a) << 16) + ((b) << 8) + (c))")
    out.append("#define SLURM_VERSION_MAJOR(a) (((a) >> 16) & 0xff)")
    out.append("#define SLURM_VERSION_MINOR(a) (((a) >> 8) & 0xff)")
    out.append("#define SLURM_VERSION_MICRO(a) ((a) & 0xff)\n\n#endif\n")
    return "\n".join(out)


def header_slurm(facts):
    out = begin(facts, "slurm.h")
    out.append("#include <slurm/slurm_errno.h>\n#include <slurm/slurm_version.h>\n")
    out.append("\n".join("#include <%s.h>" % h for h in (
        "netinet/in", "pthread", "stdbool", "stdint", "stdio", "sys/socket", "sys/types", "time", "unistd", "inttypes", "stdarg", "stdlib")))
    out.append("\n" + EXTERN_C)
    out.append("typedef int64_t bitstr_t;\ntypedef bitstr_t bitoff_t;\ntypedef struct sockaddr_storage slurm_addr_t;")
    out.append("typedef uint64_t sluid_t;")
    out.append(LISTS_38 if facts.api == "38" else LISTS_42)
    out.append("typedef void (*ListDelF)(void *x);\ntypedef int (*ListCmpF)(void *x, void *y);")
    out.append("typedef int (*ListFindF)(void *x, void *key);\ntypedef int (*ListForF)(void *x, void *arg);")
    for name in OPAQUE:
        if name + "_t" not in facts.structs:
            out.append("typedef struct %s %s_t;" % (name, name))
    for name in ENUM_WORDS:
        out.append("typedef uint32_t %s;" % name)
    for name in facts.structs:
        if facts.headers[name] in ("slurm.h", "slurmdb.h"):
            out.append("typedef struct %s %s_t;" % (tag(name), tag(name)))
    for alias, name in ALIASES.items():
        if name in facts.structs and alias not in facts.structs:
            out.append("typedef %s %s;" % (name, alias))
    out.append("")
    write_constants(facts, "slurm.h", out)
    write_structs(facts, "slurm.h", out)
    write_functions(facts, "slurm.h", out)
    out.append(SUBMIT)
    return finish(out)


def header_slurmdb(facts):
    out = begin(facts, "slurmdb.h")
    out.append("#include <slurm/slurm.h>\n\n" + EXTERN_C)
    write_constants(facts, "slurmdb.h", out)
    write_structs(facts, "slurmdb.h", out)
    write_functions(facts, "slurmdb.h", out)
    return finish(out)


SPANK = """
typedef struct spank_handle *spank_t;
typedef int (spank_f)(spank_t spank, int ac, char *argv[]);
typedef int spank_err_t_;
typedef int (*spank_opt_cb_f)(int val, const char *optarg, int remote);
#define spank_err_t spank_err_t_
"""
SPANK_END = """
#define SPANK_OPTIONS_TABLE_END { NULL, NULL, NULL, 0, 0, NULL }
#define SPANK_PLUGIN(name, version)                              \\
    const char plugin_name[] = #name;                            \\
    const char plugin_type[] = "spank";                          \\
    const unsigned int plugin_version = SLURM_VERSION_NUMBER;    \\
    const unsigned int spank_plugin_version = (version);
"""
CALLBACKS = ["init", "job_prolog", "init_post_opt", "local_user_init", "user_init", "task_init_privileged",
             "task_init", "task_post_fork", "task_exit", "job_epilog", "slurmd_exit", "exit"]
SPANK_FUNCTIONS = [
    "const char *spank_strerror(spank_err_t err)", "int spank_symbol_supported(const char *symbol)",
    "int spank_remote(spank_t spank)", "spank_context_t spank_context(void)",
    "spank_err_t spank_option_register(spank_t spank, struct spank_option *opt)",
    "spank_err_t spank_option_getopt(spank_t spank, struct spank_option *opt, char **optarg)",
    "spank_err_t spank_get_item(spank_t spank, spank_item_t item, ...)",
    "spank_err_t spank_getenv(spank_t spank, const char *var, char *buf, int len)",
    "spank_err_t spank_setenv(spank_t spank, const char *var, const char *val, int overwrite)",
    "spank_err_t spank_unsetenv(spank_t spank, const char *var)",
    "spank_err_t spank_job_control_getenv(spank_t spank, const char *name, char *buf, int len)",
    "spank_err_t spank_job_control_setenv(spank_t spank, const char *name, const char *value, int overwrite)",
    "spank_err_t spank_job_control_unsetenv(spank_t spank, const char *name)",
]


def header_spank(facts):
    out = begin(facts, "spank.h")
    out.append("#include <slurm/slurm_errno.h>\n#include <slurm/slurm_version.h>\n")
    out.append("\n".join("#include <%s.h>" % h for h in (
        "inttypes", "stdarg", "stdbool", "stdint", "stdlib", "sys/types", "unistd")))
    out.append("\n" + EXTERN_C + SPANK)
    write_constants(facts, "spank.h", out)
    write_structs(facts, "spank.h", out)
    out.append(SPANK_END)
    for name in CALLBACKS:
        out.append("extern int slurm_spank_%s(spank_t spank, int ac, char *argv[]);" % name)
    for text in SPANK_FUNCTIONS + ([] if facts.api == "38" else [
            "spank_err_t spank_prepend_task_argv(spank_t spank, int argc, const char *argv[])"]):
        out.append("extern %s;" % text)
    out.append("extern struct spank_option spank_options[];")
    write_functions(facts, "spank.h", out)
    return finish(out)


# ---- for the library ----

def internal_head(what):
    return ["/* SPDX-License-Identifier: Apache-2.0 */\n/* %s Written by src/compat/generate.py. */" % what]


def members(facts):
    out = internal_head("Which members the structs of this API have.")
    out.append("#ifndef COMPAT_MEMBERS_H\n#define COMPAT_MEMBERS_H\n")
    for name, fields in facts.union.items():
        here = {f[0] for f in facts.structs.get(name, [])}
        out.append("#define HAS_%s %d" % (name, name in facts.structs))
        for field in fields:
            if "." not in field:
                out.append("#define HAS_%s_%s %d" % (name, field, field in here))
    for row in facts.functions:
        out.append("#define EXPORTS_%s %d" % (row["symbol"], row["sig_" + facts.api] != "-"))
    out.append("\n#endif\n")
    return "\n".join(out)


def protos(facts):
    out = internal_head("Every function of the library.")
    out.append("#ifndef COMPAT_PROTOS_H\n#define COMPAT_PROTOS_H\n")
    for row in facts.functions:  # private ones of other APIs too: they are compiled, and stay local
        known = [row["sig_" + n] for n in (facts.api, "38", "42", "45") if row["sig_" + n] != "-"]
        if row["header"] == "-" and row["kind"] == "func" and row["symbol"] not in facts.refused:
            out.append("%s;" % prototype(facts, row["symbol"], known[0]))
    for name in free_structs(facts):
        out.append("void compat_free_%s(%s *record);" % (name, typedef(name)))
    out.append("\n#endif\n")
    return "\n".join(out)


def typedef(name):
    return tag(name) + "_t"


def layout(facts):
    out = internal_head("Are our structs laid out as the tables say?")
    out.append("#include <stddef.h>\n#include <slurm/slurmdb.h>\n#include <slurm/spank.h>\n")
    for name, fields in facts.structs.items():
        kind = "struct " + name if name == "spank_option" else typedef(name)  # names that Slurm's own headers have too
        out.append('_Static_assert(sizeof(%s) == %d, "%s");' % (kind, facts.sizes[name], name))
        for field, _, offset, size in fields:
            out.append('_Static_assert(offsetof(%s, %s) == %d, "%s.%s");' % (kind, field, offset, name, field))
            out.append('_Static_assert(sizeof(((%s *)0)->%s) == %d, "%s.%s");' % (kind, field, size, name, field))
    for name, _, _, value in facts.constants:
        if re.match(r"^-?\d+$", value):
            out.append('_Static_assert((uint64_t)(int64_t)(%s) == UINT64_C(0x%x), "%s");' % (
                name, int(value) & (2**64 - 1), name))
    return "\n".join(out) + "\n"


def free_structs(facts):
    for name in facts.structs:
        if name not in ("slurm_step_io_fds_t", "slurm_hash_t", "spank_option", "slurm_errtab_t"):
            yield name


def free_member(facts, name, field, word):
    if (name, field) in BORROWED or "." in field:
        return None
    if name in ARRAYS and field == ARRAYS[name][0]:
        base = word.rstrip("*")
        return ("    for (uint32_t i = 0; record->%s && i < record->%s; i++)\n        compat_free_%s(&record->%s[i]);\n"
                "    slurm_xfree((void **)&record->%s);" % (field, ARRAYS[name][1], base, field, field))
    if word == "char**":
        count = COUNTS.get(field)
        if count and count not in [f[0] for f in facts.structs[name]]:
            count = None
        return "    compat_free_strings(&record->%s, %s);" % (field, "record->%s" % count if count else "UINT32_MAX")
    if word in ("List", "list_t*"):
        return "    if (record->%s)\n        slurm_list_destroy(record->%s);\n    record->%s = NULL;" % (field, field, field)
    if word == "bitstr_t*":
        return "    slurm_bit_free(&record->%s);" % field
    if word == "dynamic_plugin_data_t*":
        return "    compat_free_plugin_data(&record->%s);" % field
    if word == "job_resources_t*":
        return "    compat_free_resources(&record->%s);" % field
    if word == "uint32_t**":
        if "node_cnt" not in [f[0] for f in facts.structs[name]]:
            return None
        return "    compat_free_rows(&record->%s, record->node_cnt);" % field
    if re.match(r"^(char|u?int\d+_t|double|long double|int|time_t|slurm_addr_t)\*$", word):
        return "    slurm_xfree((void **)&record->%s);" % field
    match = re.match(r"^(\w+)\*$", word)
    if match and match.group(1) in facts.structs and match.group(1) not in ("slurmdb_assoc_rec_t",):
        base = match.group(1)
        return "    if (record->%s)\n        compat_free_%s(record->%s);\n    slurm_xfree((void **)&record->%s);" % (
            field, base, field, field)
    if word in facts.structs and word not in ("slurm_step_id_t", "slurm_hash_t", "slurm_step_io_fds_t"):
        return "    compat_free_%s(&record->%s);" % (word, field)
    return None


def freed_by(facts, symbol):
    """The struct that slurmdb_destroy_x or slurm_free_x frees, or None."""
    match = re.match(r"^slurmdb_(?:destroy|free)_(\w+?)(_members)?$", symbol)
    if not match:
        return None, False
    for name in ("slurmdb_%s_t" % match.group(1), "slurmdb_%s" % match.group(1), match.group(1) + "_t"):
        if name in facts.structs:
            return name, bool(match.group(2))
    return None, False


def free_file(facts, defined):
    out = internal_head("Frees what the members of each struct point to.")
    out.append("#include \"compat/compat.h\"\n")
    for name in free_structs(facts):
        lines = [t for t in (free_member(facts, name, f, w) for f, w, _, _ in facts.structs[name]) if t]
        out.append("void compat_free_%s(%s *record)\n{" % (name, typedef(name)))
        out += lines
        out.append("}\n")
    for symbol, kind, signature, _, _ in facts.exported():
        name, only_members = freed_by(facts, symbol)
        if kind != "func" or symbol in defined or not name:
            continue
        _, args, _ = parse_signature(facts, signature)
        out.append("%s\n{\n    %s *record = %s;\n\n    if (!record)\n        return;\n    compat_free_%s(record);" % (
            prototype(facts, symbol, signature), typedef(name), args[0][1], name))
        if not only_members:
            out.append("    slurm_xfree((void **)&record);")
        out.append("}\n")
        defined.add(symbol)
    return "\n".join(out)


def unsupported(facts, defined):
    out = internal_head("What is exported and cannot be done here.")
    out.append("#include \"compat/compat.h\"\n")
    missing = []
    for symbol, kind, signature, header, priority in facts.exported():
        if symbol in defined or kind == "data":
            continue
        if priority != "P3" and symbol not in facts.refused:
            missing.append(symbol)
            continue
        if header == "-" or signature == "-":  # its types are private: only how it returns matters
            result = signature.split("(")[0].strip() if signature != "-" else "char*"
            result = "void *" if "*" in result or result == "List" else "void" if result == "void" else "int"
            text = "%s %s(void)" % (result, symbol)
            out.append("%s;" % text)
        else:
            result = parse_signature(facts, signature)[0]
            text = prototype(facts, symbol, signature)
        out.append(text + "\n{")
        if result == "void":
            out.append("    compat_not_supported();")
        elif "*" in result or result == "List":
            out.append("    compat_not_supported();\n    return NULL;")
        else:
            out.append("    return compat_not_supported();")
        out.append("}\n")
    if missing:
        fail("no source defines: " + " ".join(missing))
    return "\n".join(out)


def exports(facts):
    names = sorted({symbol for symbol, *_ in facts.exported()} | {"spur_submit_batch_job_id"})
    return "{\nglobal:\n%s\nlocal:\n    *;\n};\n" % "\n".join("    %s;" % n for n in names)


def conf_members(facts):
    out = internal_head("Members of slurm_conf_t that are a text or a number.")
    kinds = {"char*": "MEMBER_TEXT", "uint16_t": "MEMBER_U16", "uint32_t": "MEMBER_U32", "uint64_t": "MEMBER_U64",
             "time_t": "MEMBER_TIME", "uid_t": "MEMBER_U32", "gid_t": "MEMBER_U32"}
    out += ["CONF_MEMBER(%s, %s)" % (field, kinds[word]) for field, word, _, _ in facts.structs["slurm_conf_t"]
            if word in kinds]
    return "\n".join(out) + "\n"


def errors(facts):
    out = internal_head("Slurm's error numbers.")
    out += ["ERROR_NUMBER(%s, %s)" % (name, value) for name, header, kind, value in facts.constants
            if header == "slurm_errno.h" and kind == "(anon)" and int(value) >= 1000]
    return "\n".join(out) + "\n"


def walk(facts):
    """A list of every function, for the test that calls them."""
    out = internal_head("Every exported name.")
    out += ['NAME("%s", %d)' % (symbol, kind == "data") for symbol, kind, *_ in facts.exported()]
    return "\n".join(out) + "\n"


def check_rows(facts, sources):
    """A struct that is filled by rows has a row for each of its members."""
    for path in sources:
        if not path.endswith("_rows.h"):
            continue
        text = open(path, encoding="utf-8").read()
        name = re.search(r"rows of (\w+)", text).group(1)
        rows = set(re.findall(r"^\s*(?:FILL|SKIP|FILL_ID)\((\w+)", text, re.M))
        lacking = [f for f in facts.union[name] if "." not in f and f not in rows
                   and f in [x[0] for x in facts.structs.get(name, [])]]
        if lacking:
            fail("%s: no row for %s" % (path, " ".join(lacking)))


def main():
    if len(sys.argv) < 5 or sys.argv[1] not in RELEASE:
        sys.exit(__doc__)
    api, folder, target, stamp, sources = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
    facts = Facts(api, folder)
    check_rows(facts, sources)
    defined = set()
    for path in sources:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        defined |= set(re.findall(r"^[A-Za-z_][\w\s\*]*?\b(slurm\w*)\(", text, re.M))
        defined |= set(re.findall(r"^(?:LOG_FUNCTION|INIT)\((slurm\w*),", text, re.M))
    files = {
        "slurm/slurm_errno.h": header_errno(facts), "slurm/slurm_version.h": header_version(facts),
        "slurm/slurm.h": header_slurm(facts), "slurm/slurmdb.h": header_slurmdb(facts),
        "slurm/spank.h": header_spank(facts), "members.h": members(facts), "protos.h": protos(facts),
        "layout.c": layout(facts), "free.c": free_file(facts, defined),
        "unsupported.c": unsupported(facts, defined), "exports.map": exports(facts), "names.h": walk(facts),
        "errors.h": errors(facts), "conf_members.h": conf_members(facts),
    }
    os.makedirs(os.path.join(target, "slurm"), exist_ok=True)
    for name, text in files.items():
        text = text.rstrip("\n") + "\n"
        with open(os.path.join(target, name), "w", encoding="utf-8") as file:
            file.write(text)
    for link in ("libslurm.so", "libslurm.so." + api):  # as the loader and the linker look for it
        if not os.path.islink(os.path.join(target, link)):
            os.symlink("libspur_compat.so", os.path.join(target, link))
    with open(stamp, "w", encoding="utf-8") as file:
        file.write("%s\n" % api)


if __name__ == "__main__":
    main()
