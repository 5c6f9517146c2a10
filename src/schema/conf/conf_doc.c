/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_doc.c - the reference of all keys, written from the tables
 */
#include "schema/conf_doc.h"

#include <string.h>

#include "schema/conf/slurmconf.h"

/* Text in a cell of a Markdown table. */
static void add_cell(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            str_add_char(out, '\\');
        str_add_char(out, *text);
    }
}

static void document_key(const struct conf_key *key, struct str *out)
{
    struct str says = { 0 };

    conf_key_expects(key, &says);
    str_addf(out, "| `%s` | ", key->name);
    add_cell(out, str_text(&says));
    str_add(out, " | ");
    if (key->flags & CONF_REQUIRED)
        str_add(out, "required");
    else if (key->def)
        str_addf(out, "`%s`", key->def);
    str_addf(out, " | %s | ", key->slurm ? key->slurm : "");
    add_cell(out, key->help);
    str_add(out, " |\n");
    str_done(&says);
}

static void document_sections(struct str *out)
{
    for (size_t i = 0; i < conf_section_count; i++) {
        const struct conf_section *section = &conf_sections[i];

        if (!*section->name)
            str_add(out, "\n### Top of the file\n");
        else
            str_addf(out, section->list ? "\n### [[%s]]\n" : "\n### [%s]\n", section->name);
        str_addf(out,
                 "\n%s\n\n| key | value | default | in slurm.conf | meaning |\n"
                 "|---|---|---|---|---|\n",
                 section->help);
        for (const struct conf_key *key = section->keys; key->name; key++)
            document_key(key, out);
    }
    str_add(out,
            "\n### [slurm]\n\nKeys of slurm.conf that change nothing here, with text as value. "
            "`scontrol show config` prints them.\n");
}

static const char *const scope_titles[SLURMCONF_SCOPES] = {
    [SLURMCONF_GLOBAL] = "slurm.conf",
    [SLURMCONF_NODE] = "slurm.conf, lines of NodeName",
    [SLURMCONF_PARTITION] = "slurm.conf, lines of PartitionName",
    [SLURMCONF_FRONTEND] = "slurm.conf, lines of FrontendName",
    [SLURMCONF_POWER] = "slurm.conf, lines of PowerAction",
    [SLURMCONF_TOPOLOGY] = "topology.conf",
    [SLURMCONF_CGROUP] = "cgroup.conf",
    [SLURMCONF_PRIVATE] = "job_container.conf",
};

static void document_slurm(struct str *out)
{
    str_add(out, "\n## Keys of Slurm without a key of the same meaning\n\n"
                 "The tables above name the keys of Slurm that became settings. These take another "
                 "shape, change nothing here, or are not supported.\n");
    for (size_t scope = 0; scope < SLURMCONF_SCOPES; scope++) {
        if (!scope_titles[scope])
            continue;
        str_addf(out, "\n### %s\n\n| key | becomes | or why not |\n|---|---|---|\n",
                 scope_titles[scope]);
        for (size_t i = 0; i < slurmconf_key_count; i++) {
            const struct slurmconf_key *key = &slurmconf_keys[i];

            if (key->scope != scope)
                continue;
            str_addf(out, "| %s | %s | %s%s |\n", key->name, key->to ? key->to : "",
                     key->lacks ? "not supported: " : "", key->why ? key->why : "");
        }
    }
}

static void document_words(struct str *out)
{
    str_add(out, "\n### Words inside keys of slurm.conf\n\n"
                 "| key | word | becomes | or why not |\n|---|---|---|---|\n");
    for (size_t i = 0; i < slurmconf_word_count; i++) {
        const struct slurmconf_word *word = &slurmconf_words[i];

        str_addf(out, "| %s | %s | %s | %s%s |\n", word->key, word->word, word->to ? word->to : "",
                 word->lacks ? "not supported: " : "", word->why ? word->why : "");
    }
}

void conf_document(struct str *out)
{
    str_add(out, "## Keys\n");
    document_sections(out);
    document_slurm(out);
    document_words(out);
}
