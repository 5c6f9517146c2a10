// SPDX-License-Identifier: Apache-2.0
// queue.js - the jobs of the cluster: filter, sort, group
import { html, useEffect, useMemo, useState } from "/vendor/preact-htm.js";
import { get, number, watch } from "/api.js";
import { duration, gpuCount, stateOf, tone, when } from "/text.js";

const PAGE = 200;
const id = (job) => {
  const array = number(job.array_job_id), task = number(job.array_task_id);
  if (array && task !== null) return `${array}_${task}`;
  return array && job.array_task_string ? `${array}_[${job.array_task_string}]` : String(job.job_id);
};
const wanted = (job) => gpuCount((job.tres_alloc_str || job.tres_req_str || "").replace(/gres\//g, "").replace(/=/g, ":"));
const elapsed = (job) => {
  const start = number(job.start_time), end = number(job.end_time);
  const state = stateOf(job);
  if (state === "PENDING" || !start) return null;
  return (state === "RUNNING" || state === "COMPLETING" ? Date.now() / 1000 : end) - start;
};

const columns = [
  { name: "Job", value: (j) => j.job_id, show: (j) => html`<a href=${"#/job/" + j.job_id}>${id(j)}</a>` },
  { name: "Name", value: (j) => j.name },
  { name: "User", value: (j) => j.user_name },
  { name: "Account", value: (j) => j.account },
  { name: "Partition", value: (j) => j.partition },
  { name: "State", value: stateOf, show: (j) => html`<span class=${"state " + tone(stateOf(j))}>${stateOf(j)}</span>` },
  { name: "Where or why", value: (j) => j.nodes || j.state_reason || "", wide: true,
    show: (j) => (stateOf(j) === "PENDING"
      ? `${j.state_reason && j.state_reason !== "None" ? j.state_reason : "next"}${number(j.start_time) ? ", expected " + when(number(j.start_time)) : ""}`
      : j.nodes || "") },
  { name: "Time", value: (j) => elapsed(j) ?? -1, show: (j) => duration(elapsed(j)) },
  { name: "Limit", value: (j) => number(j.time_limit) ?? 0, show: (j) => duration((number(j.time_limit) ?? 0) * 60) },
  { name: "Nodes", value: (j) => number(j.node_count) ?? 0 },
  { name: "CPUs", value: (j) => number(j.cpus) ?? 0 },
  { name: "GPUs", value: wanted, show: (j) => wanted(j) || "" },
  { name: "Priority", value: (j) => number(j.priority) ?? 0 },
];

const views = {
  active: (j) => ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING"].includes(stateOf(j)),
  waiting: (j) => stateOf(j) === "PENDING",
  running: (j) => stateOf(j) === "RUNNING",
  ended: (j) => !views.active(j),
  all: () => true,
};

function matches(job, words) {
  const text = `${id(job)} ${job.name} ${job.user_name} ${job.account} ${job.partition} ${stateOf(job)} ${job.state_reason} ${job.nodes}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function Rows({ jobs }) {
  return jobs.map((job) => html`<tr key=${job.job_id}>
    ${columns.map((c) => html`<td class=${c.wide ? "wide" : ""}>${c.show ? c.show(job) : c.value(job)}</td>`)}</tr>`);
}

function Head({ sort, setSort }) {
  return html`<thead><tr>${columns.map((c, i) => html`<th scope="col" aria-sort=${sort.by === i ? (sort.down ? "descending" : "ascending") : "none"}>
    <button onClick=${() => setSort({ by: i, down: sort.by === i ? !sort.down : false })}>${c.name}${sort.by === i ? (sort.down ? " ↓" : " ↑") : ""}</button></th>`)}</tr></thead>`;
}

export function Queue({ me }) {
  const [jobs, setJobs] = useState(null);
  const [error, setError] = useState("");
  const [filter, setFilter] = useState("");
  const [view, setView] = useState("active");
  const [group, setGroup] = useState("");
  const [mine, setMine] = useState(false);
  const [sort, setSort] = useState({ by: 0, down: true });
  const [shown, setShown] = useState(PAGE);

  useEffect(() => {
    const load = () => get("jobs").then((a) => { setJobs(a.jobs); setError(""); }, (e) => setError(e.message));
    load();
    return watch(load);
  }, []);

  const list = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const value = columns[sort.by].value;
    const found = (jobs || []).filter((j) => views[view](j) && (!mine || !me || j.user_name === me.user) && matches(j, words));
    return found.sort((a, b) => {
      const x = value(a), y = value(b);
      return (x < y ? -1 : x > y ? 1 : 0) * (sort.down ? -1 : 1);
    });
  }, [jobs, filter, view, mine, sort]);

  const groups = useMemo(() => {
    if (!group) return [["", list.slice(0, shown)]];
    const by = new Map();
    for (const job of list) {
      const name = group === "array" ? String(number(job.array_job_id) || job.job_id) : job[group] || "none";
      if (!by.has(name)) by.set(name, []);
      by.get(name).push(job);
    }
    return [...by].sort((a, b) => b[1].length - a[1].length).map(([n, l]) => [n, l.slice(0, shown)]);
  }, [list, group, shown]);

  return html`<h1>Queue</h1>
    ${error && html`<p class="note bad" role="alert">The list is not current: ${error}</p>`}
    <div class="bar">
      <label>Filter<input type="search" value=${filter} placeholder="name, user, node, reason" onInput=${(e) => setFilter(e.target.value)} /></label>
      <label>Jobs<select value=${view} onChange=${(e) => setView(e.target.value)}>
        <option value="active">waiting and running</option><option value="waiting">waiting</option><option value="running">running</option>
        <option value="ended">ended</option><option value="all">all</option></select></label>
      <label>Group by<select value=${group} onChange=${(e) => setGroup(e.target.value)}>
        <option value="">nothing</option><option value="user_name">user</option><option value="account">account</option>
        <option value="partition">partition</option><option value="array">array</option></select></label>
      <label class="line"><input type="checkbox" checked=${mine} onChange=${(e) => setMine(e.target.checked)} />only mine</label>
      <span class="soft" aria-live="polite">${jobs ? `${list.length} of ${jobs.length} jobs` : "loading"}</span>
    </div>
    ${groups.map(([name, some]) => html`<section key=${name}>${name && html`<h2>${name} <span class="soft">(${some.length})</span></h2>`}
      <div class="table" tabindex="0" role="region" aria-label=${name ? "Jobs of " + name : "Jobs"}><table>
        <${Head} sort=${sort} setSort=${setSort} /><tbody><${Rows} jobs=${some} /></tbody></table></div></section>`)}
    ${!group && list.length > shown && html`<p><button onClick=${() => setShown(shown + 5 * PAGE)}>Show more</button></p>`}
    ${jobs && !list.length && html`<p class="soft">No job matches.</p>`}`;
}
