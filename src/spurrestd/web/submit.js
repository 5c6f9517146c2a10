// SPDX-License-Identifier: Apache-2.0
// submit.js - a form that writes an sbatch script, and sends it
import { html, useEffect, useState } from "/vendor/preact-htm.js";
import { get, send } from "/api.js";

const templates = {
  cpu: { name: "One program", nodes: 1, tasks: 1, cpus: 1, gpus: 0, time: "01:00:00", command: "srun ./program" },
  gpu: { name: "One GPU", nodes: 1, tasks: 1, cpus: 8, gpus: 1, time: "04:00:00", command: "python train.py" },
  torch: { name: "torchrun on several nodes", nodes: 2, tasks: 1, cpus: 16, gpus: 8, time: "12:00:00",
    command: 'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n' +
      'srun torchrun --nnodes "$SLURM_JOB_NUM_NODES" --nproc-per-node "$SLURM_GPUS_ON_NODE" \\\n' +
      '    --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$head:29500" train.py' },
  array: { name: "Array of tasks", nodes: 1, tasks: 1, cpus: 1, gpus: 0, time: "01:00:00", array: "1-10", command: './task "$SLURM_ARRAY_TASK_ID"' },
};

function script(form) {
  const lines = ["#!/bin/bash"];
  const add = (name, value) => { if (value) lines.push(`#SBATCH --${name}=${value}`); };
  add("job-name", form.job);
  add("partition", form.partition);
  add("nodes", form.nodes);
  add("ntasks-per-node", form.tasks);
  add("cpus-per-task", form.cpus);
  add("gpus-per-node", Number(form.gpus) || "");
  add("mem", form.mem);
  add("time", form.time);
  add("array", form.array);
  return lines.join("\n") + "\n\n" + form.command + "\n";
}

const fields = [
  ["job", "Name"], ["nodes", "Nodes", "number"], ["tasks", "Tasks per node", "number"], ["cpus", "CPUs per task", "number"],
  ["gpus", "GPUs per node", "number"], ["mem", "Memory per node (8G)"], ["time", "Time limit"], ["array", "Array (1-10%4)"], ["dir", "Directory (your home)"],
];

export function Submit() {
  const [form, setForm] = useState({ ...templates.cpu, job: "job", partition: "", mem: "", array: "", dir: "" });
  const [own, setOwn] = useState(null); // the script as the user edited it
  const [partitions, setPartitions] = useState([]);
  const [note, setNote] = useState("");
  useEffect(() => { get("partitions").then((a) => setPartitions(a.partitions.map((p) => p.name)), () => {}); }, []);

  const set = (name, value) => { setForm({ ...form, [name]: value }); setOwn(null); };
  const take = (which) => { setForm({ ...form, array: "", ...templates[which] }); setOwn(null); };
  const text = own ?? script(form);
  const submit = async (event) => {
    event.preventDefault();
    setNote("");
    try {
      const job = { name: form.job || "job", script: text };
      if (form.dir) job.current_working_directory = form.dir;
      const answer = await send("POST", "job/submit", { job });
      location.hash = "#/job/" + answer.job_id;
    } catch (e) {
      setNote(e.message);
    }
  };
  return html`<h1>Submit</h1>
    <form onSubmit=${submit}><div class="two"><div>
      <div class="bar">
        <label>Template<select onChange=${(e) => take(e.target.value)}>${Object.entries(templates).map(([key, t]) => html`<option value=${key}>${t.name}</option>`)}</select></label>
        <label>Partition<select value=${form.partition} onChange=${(e) => set("partition", e.target.value)}>
          <option value="">the default</option>${partitions.map((p) => html`<option value=${p}>${p}</option>`)}</select></label>
        ${fields.map(([name, label, type]) => html`<label>${label}<input type=${type || "text"} min="0" value=${form[name]} onInput=${(e) => set(name, e.target.value)} /></label>`)}
      </div>
      <label>Command<textarea value=${form.command} onInput=${(e) => set("command", e.target.value)}></textarea></label>
    </div><div>
      <label>The script that is sent<textarea value=${text} onInput=${(e) => setOwn(e.target.value)} spellcheck="false"></textarea></label>
      <p><button class="main" type="submit">Submit</button> <span class="soft">the same as: sbatch script.sh</span></p>
      ${note && html`<p class="note bad" role="alert">${note}</p>`}
    </div></div></form>`;
}
