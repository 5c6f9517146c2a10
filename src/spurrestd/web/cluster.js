// SPDX-License-Identifier: Apache-2.0
// cluster.js - every node and GPU: what is used, what is free, what drains and why
import { html, useEffect, useState } from "/vendor/preact-htm.js";
import { get, send, watch } from "/api.js";
import { gpuCount, gpus, memory } from "/text.js";

const has = (node, word) => (node.state || []).includes(word);
const isDown = (node) => has(node, "DOWN") || has(node, "NOT_RESPONDING") || has(node, "UNKNOWN");
const isDrained = (node) => has(node, "DRAIN") || has(node, "DRAINED") || has(node, "DRAINING");
const usable = (node) => !isDown(node) && !isDrained(node);

// A cell is a GPU, or an eighth of the CPUs of a node without GPUs.
function cells(node) {
  const total = gpuCount(node.gres);
  if (total) return { count: total, busy: gpuCount(node.gres_used), what: "GPU" };
  const count = Math.min(8, node.cpus || 1);
  return { count, busy: Math.ceil(((node.alloc_cpus || 0) * count) / (node.cpus || 1)), what: "CPUs" };
}

function Node({ node, staff, act }) {
  const { count, busy, what } = cells(node);
  const tone = isDown(node) ? "down" : isDrained(node) ? "drain" : "";
  const words = `${node.name}: ${(node.state || []).join(" ").toLowerCase()}, ${node.alloc_cpus || 0} of ${node.cpus} CPUs, ` +
    `${memory(node.alloc_memory) || "0 MB"} of ${memory(node.real_memory)}${what === "GPU" ? `, ${busy} of ${count} GPUs` : ""}`;
  return html`<li class="card"><strong>${node.name}</strong> <span class="soft">${(node.state || []).join(" ").toLowerCase()}</span>
    <div class="cells" role="img" aria-label=${words} title=${words}>
      ${Array.from({ length: count }, (_, i) => html`<span class=${"cell " + (i < busy ? "busy" : tone)}></span>`)}</div>
    <div class="soft">${node.alloc_cpus || 0}/${node.cpus} CPUs, ${memory(node.alloc_memory) || "0"} of ${memory(node.real_memory)}</div>
    ${node.reason && html`<div class="soft">${node.reason}</div>`}
    ${staff && html`<div>${isDrained(node) || isDown(node)
      ? html`<button onClick=${() => act(node, "RESUME")}>Resume</button>`
      : html`<button onClick=${() => act(node, "DRAIN")}>Drain</button>`}</div>`}</li>`;
}

function totals(nodes) {
  const kinds = new Map();
  let cpus = 0, free = 0;
  for (const node of nodes) {
    cpus += node.cpus || 0;
    free += usable(node) ? (node.cpus || 0) - (node.alloc_cpus || 0) : 0;
    const used = gpus(node.gres_used);
    for (const gpu of gpus(node.gres)) {
      const kind = kinds.get(gpu.type) || { total: 0, free: 0 };
      const taken = used.filter((u) => u.type === gpu.type).reduce((s, u) => s + u.count, 0);
      kind.total += gpu.count;
      kind.free += usable(node) ? gpu.count - taken : 0;
      kinds.set(gpu.type, kind);
    }
  }
  return { cpus, free, kinds: [...kinds] };
}

export function Cluster({ me }) {
  const [nodes, setNodes] = useState(null);
  const [note, setNote] = useState("");
  const load = () => get("nodes").then((a) => { setNodes(a.nodes); setNote(""); }, (e) => setNote("This is not current: " + e.message));
  useEffect(() => { load(); return watch(load); }, []);
  const act = async (node, state) => {
    const reason = state === "DRAIN" ? prompt(`Why is ${node.name} drained?`) : null;
    if (state === "DRAIN" && !reason) return;
    try {
      await send("POST", "node/" + encodeURIComponent(node.name), reason ? { state: [state], reason } : { state: [state] });
      load();
    } catch (e) {
      setNote(`${node.name}: ${e.message}`);
    }
  };

  if (!nodes) return html`<h1>Cluster</h1><p class=${note ? "note bad" : "soft"}>${note || "loading"}</p>`;
  const { cpus, free, kinds } = totals(nodes);
  const away = nodes.filter((n) => !usable(n));
  return html`<h1>Cluster</h1>
    ${note && html`<p class="note bad" role="alert">${note}</p>`}
    <div class="cards">
      <div class="card"><b>${nodes.length - away.length} / ${nodes.length}</b>nodes in service</div>
      <div class="card"><b>${free} / ${cpus}</b>CPUs free</div>
      ${kinds.map(([type, k]) => html`<div class="card"><b>${k.free} / ${k.total}</b>${type} free</div>`)}
    </div>
    <h2>Nodes</h2>
    <p class="legend soft"><span><i class="cell busy"></i>in use</span><span><i class="cell"></i>free</span>
      <span><i class="cell drain"></i>draining</span><span><i class="cell down"></i>down</span></p>
    <ul class="nodes">${nodes.map((n) => html`<${Node} key=${n.name} node=${n} staff=${me && me.staff} act=${act} />`)}</ul>`;
}
