// SPDX-License-Identifier: Apache-2.0
// api.js - calls of /api/v1, and who is asking
//
// On the machine that runs spurrestd nothing is needed: the server knows the owner of the connection.
// Elsewhere a token is: from a link that `spur web` prints, or typed in. It is kept for this tab only.

const key = "spur-token";

// The token of a link is behind '#', which a browser never sends; it leaves the address bar at once.
function takeFromLink() {
  const match = /^#token=([A-Za-z0-9._-]+)$/.exec(location.hash);
  if (!match) return;
  sessionStorage.setItem(key, match[1]);
  history.replaceState(null, "", "/#/queue");
}
takeFromLink();

export const token = () => sessionStorage.getItem(key);
export function setToken(text) {
  if (text) sessionStorage.setItem(key, text.trim());
  else sessionStorage.removeItem(key);
}

export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

function headers(more) {
  const out = { ...more };
  if (token()) out.Authorization = "Bearer " + token();
  return out;
}

async function failed(answer) {
  let text = answer.statusText || "the server answered " + answer.status;
  try {
    const body = await answer.json();
    const first = body.errors && body.errors[0];
    if (first) text = first.description || first.error || text;
  } catch { /* not an object of ours: the status says it */ }
  return new ApiError(answer.status, text);
}

export async function get(path, signal) {
  const answer = await fetch("/api/v1/" + path, { headers: headers(), signal });
  if (!answer.ok) throw await failed(answer);
  return answer.json();
}

export async function send(method, path, body) {
  const answer = await fetch("/api/v1/" + path, {
    method,
    headers: headers({ "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID ? crypto.randomUUID() : String(Math.random()) }),
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!answer.ok) throw await failed(answer);
  return answer.json();
}

// Calls onText with pieces of text as they come, until the end or until the signal aborts.
export async function stream(path, onText, signal) {
  const answer = await fetch("/api/v1/" + path, { headers: headers({ Accept: "*/*" }), signal });
  if (!answer.ok) throw await failed(answer);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onText(decoder.decode(value, { stream: true }));
  }
}

// Tells `changed` whenever something changed in the cluster, or every few seconds without the stream.
export function watch(changed) {
  const stop = new AbortController();
  let timer = 0, live = false;
  const soon = () => { clearTimeout(timer); timer = setTimeout(() => { if (!document.hidden) changed(); }, 400); };
  const poll = setInterval(() => { if (!document.hidden && !live) changed(); }, 4000);
  const slow = setInterval(() => { if (!document.hidden && live) changed(); }, 20000);
  (async () => {
    while (!stop.signal.aborted) {
      try {
        live = true;
        await stream("events", soon, stop.signal);
      } catch (e) {
        live = false;
        if (e.status && e.status !== 503) return;
      }
      live = false;
      await new Promise((r) => setTimeout(r, 3000));
    }
  })();
  return () => { stop.abort(); clearTimeout(timer); clearInterval(poll); clearInterval(slow); };
}

// Slurm's numbers come as { set, infinite, number }.
export const number = (n) => (n === undefined || n === null ? null : typeof n === "object" ? (n.infinite ? Infinity : n.set ? n.number : null) : n);
