// SPDX-License-Identifier: Apache-2.0
// text.js - values as people read them

export function duration(s) {
  if (s === null || s < 0) return "";
  if (s === Infinity) return "no limit";
  s = Math.floor(s);
  const d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  const two = (n) => String(n).padStart(2, "0");
  if (d) return `${d}d ${two(h)}h`;
  if (h) return `${h}h ${two(m)}m`;
  if (m) return `${m}m ${two(s % 60)}s`;
  return `${s}s`;
}

export function when(unix) {
  if (!unix || unix === Infinity) return "";
  const date = new Date(unix * 1000), now = new Date();
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return date.toDateString() === now.toDateString() ? time : date.toLocaleDateString([], { day: "numeric", month: "short" }) + " " + time;
}

export const stateOf = (job) => (job.job_state && job.job_state[0]) || "";

export function tone(state) {
  if (state === "RUNNING" || state === "COMPLETED") return "good";
  if (state === "PENDING" || state === "SUSPENDED" || state === "COMPLETING" || state === "CONFIGURING") return "wait";
  return "bad";
}

export function memory(mb) {
  if (!mb) return "";
  return mb >= 1024 ? `${(mb / 1024).toFixed(mb % 1024 ? 1 : 0)} GB` : `${mb} MB`;
}

// "gpu:mi300x:8(IDX:0-7),gpu:a100:2" is [{ type, count }].
export function gpus(text) {
  const out = [];
  for (const part of (text || "").replace(/\([^)]*\)/g, "").split(",")) {
    const words = part.split(":");
    if (words[0] !== "gpu") continue;
    out.push({ type: words.length > 2 ? words[1] : "GPU", count: Number(words[words.length - 1]) || 0 });
  }
  return out;
}
export const gpuCount = (text) => gpus(text).reduce((sum, g) => sum + g.count, 0);
