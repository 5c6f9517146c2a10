// SPDX-License-Identifier: Apache-2.0
// job.js - one job: why it waits or how it ended, its log, what can be done with it
import { html, useEffect, useRef, useState } from "/vendor/preact-htm.js";
import { get, number, send, stream, watch } from "/api.js";
import { duration, memory, stateOf, tone, when } from "/text.js";

const LOG_MOST = 400000; // characters kept

function Log({ id, running }) {
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  const [follow, setFollow] = useState(true);
  const [find, setFind] = useState("");
  const box = useRef(null);

  useEffect(() => {
    const stop = new AbortController();
    setText("");
    setNote("");
    stream(`job/${id}/logs${running ? "?follow=1" : ""}`, (more) => setText((old) => (old + more).slice(-LOG_MOST)), stop.signal)
      .catch((e) => { if (e.name !== "AbortError") setNote(e.message); });
    return () => stop.abort();
  }, [id, running]);
  useEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [text, follow]);

  const lines = find ? text.split("\n").filter((l) => l.toLowerCase().includes(find.toLowerCase())).join("\n") : text;
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = `job-${id}.log`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  return html`<h2>Output</h2>
    <div class="bar">
      <label>Find<input type="search" value=${find} onInput=${(e) => setFind(e.target.value)} /></label>
      <label class="line"><input type="checkbox" checked=${follow} onChange=${(e) => setFollow(e.target.checked)} />follow</label>
      <button onClick=${download} disabled=${!text}>Download</button>
    </div>
    ${note && html`<p class="soft">${note}</p>`}
    <pre ref=${box} tabindex="0" role="region" aria-label="Output of the job">${lines || (note ? "" : "(nothing yet)")}</pre>`;
}

function Explain({ id, state }) {
  const [answer, setAnswer] = useState(null);
  useEffect(() => { get(`job/${id}/explain`).then(setAnswer, () => setAnswer(null)); }, [id, state]);
  if (!answer || !answer.sentence) return null;
  return html`<div class="note" role="status">${answer.sentence}
    ${answer.details && answer.details.length > 0 && html`<ul>${answer.details.map((d) => html`<li>${typeof d === "string" ? d : d.text || JSON.stringify(d)}</li>`)}</ul>`}</div>`;
}

const acts = [
  { name: "Cancel", when: (s) => ["PENDING", "RUNNING", "SUSPENDED", "CONFIGURING"].includes(s), method: "DELETE", path: "", sure: true },
  { name: "Hold", when: (s, j) => s === "PENDING" && number(j.priority) !== 0, method: "POST", path: "/hold" },
  { name: "Release", when: (s, j) => s === "PENDING" && number(j.priority) === 0, method: "POST", path: "/release" },
  { name: "Requeue", when: (s) => s === "RUNNING", method: "POST", path: "/requeue", sure: true },
];

function Acts({ job, reload }) {
  const [note, setNote] = useState("");
  const run = async (act) => {
    if (act.sure && !confirm(`${act.name} job ${job.job_id}?`)) return;
    try {
      await send(act.method, `job/${job.job_id}${act.path}`, act.method === "POST" ? {} : undefined);
      setNote(`${act.name}: done`);
      reload();
    } catch (e) {
      setNote(`${act.name} was refused: ${e.message}`);
    }
  };
  return html`<div class="bar">${acts.filter((a) => a.when(stateOf(job), job)).map((a) => html`
    <button class=${a.name === "Cancel" ? "danger" : ""} onClick=${() => run(a)}>${a.name}</button>`)}
    <span aria-live="polite">${note}</span></div>`;
}

function facts(job) {
  const exit = job.exit_code || {}, code = number(exit.return_code);
  return [
    ["User", `${job.user_name || ""}${job.account ? ", account " + job.account : ""}`],
    ["Partition", job.partition], ["QOS", job.qos],
    ["Nodes", job.nodes || `${number(job.node_count) ?? ""} asked for`],
    ["CPUs", number(job.cpus)], ["Memory per node", memory(number(job.memory_per_node))],
    ["Resources", job.tres_alloc_str || job.tres_req_str],
    ["Submitted", when(number(job.submit_time))], [stateOf(job) === "PENDING" ? "Expected start" : "Started", when(number(job.start_time))], ["Ended", stateOf(job) === "RUNNING" ? "" : when(number(job.end_time))],
    ["Time limit", duration((number(job.time_limit) ?? 0) * 60)], ["Priority", number(job.priority)],
    ["Exit code", code === null || ["PENDING", "RUNNING"].includes(stateOf(job)) ? "" : code],
    ["Directory", job.current_working_directory], ["Output file", job.standard_output], ["Comment", job.comment],
    ["Dependency", job.dependency], ["Restarts", job.restart_cnt || ""],
  ].filter(([, value]) => value !== "" && value !== null && value !== undefined);
}

export function Job({ id }) {
  const [jobs, setJobs] = useState(null);
  const [error, setError] = useState("");
  const load = () => get("job/" + id).then((a) => { setJobs(a.jobs); setError(""); }, (e) => setError(e.message));
  useEffect(() => { load(); return watch(load); }, [id]);

  if (error && !jobs) return html`<h1>Job ${id}</h1><p class="note bad" role="alert">${error}</p>`;
  if (!jobs || !jobs.length) return html`<h1>Job ${id}</h1><p class="soft">loading</p>`;
  const job = jobs.find((j) => String(j.job_id) === id) || jobs[0];
  const state = stateOf(job);
  return html`<h1>Job ${job.job_id} <span class="soft">${job.name}</span> <span class=${"state " + tone(state)}>${state}</span></h1>
    ${error && html`<p class="note bad" role="alert">This is not current: ${error}</p>`}
    <${Explain} id=${id} state=${state} />
    <${Acts} job=${job} reload=${load} />
    <dl>${facts(job).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    ${jobs.length > 1 && html`<h2>Tasks</h2><p>${jobs.slice(0, 200).map((j) => html`<a href=${"#/job/" + j.job_id}>${j.job_id}</a>${" "}`)}</p>`}
    ${state !== "PENDING" && html`<${Log} id=${String(job.job_id)} running=${state === "RUNNING"} />`}`;
}
