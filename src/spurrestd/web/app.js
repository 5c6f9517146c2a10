// SPDX-License-Identifier: Apache-2.0
// app.js - the frame around the pages: which one is shown, who is logged in, light or dark
import { html, render, useEffect, useState } from "/vendor/preact-htm.js";
import { get, setToken, token } from "/api.js";
import { Cluster } from "/cluster.js";
import { Job } from "/job.js";
import { Queue } from "/queue.js";
import { Submit } from "/submit.js";

const pages = [
  { name: "Queue", hash: "#/queue" },
  { name: "Cluster", hash: "#/cluster" },
  { name: "Submit", hash: "#/submit" },
];

function Login({ why, done }) {
  const [text, setText] = useState("");
  const enter = (event) => { event.preventDefault(); setToken(text); done(); };
  return html`<h1>Log in</h1><p>${why}</p>
    <p>Run <code>spur web</code> on the cluster and open the link that it prints, or paste a token from <code>spur token</code>.</p>
    <form onSubmit=${enter} class="bar"><label>Token<input type="password" autocomplete="off" value=${text} onInput=${(e) => setText(e.target.value)} /></label>
      <button class="main" type="submit">Log in</button></form>`;
}

function theme() {
  const stored = localStorage.getItem("spur-theme");
  return stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function App() {
  const [hash, setHash] = useState(location.hash || "#/queue");
  const [look, setLook] = useState(theme());
  const [me, setMe] = useState(null);
  const [locked, setLocked] = useState("");
  const [cluster, setCluster] = useState("");

  useEffect(() => {
    const moved = () => setHash(location.hash || "#/queue");
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  useEffect(() => {
    document.documentElement.dataset.theme = look;
    localStorage.setItem("spur-theme", look);
  }, [look]);
  const login = () => {
    get("whoami").then((a) => {
      setMe({ user: a.user, staff: a.operator || a.administrator });
      setLocked("");
    }, (e) => { if (e.status === 401 || e.status === 403) setLocked(e.message); });
    get("ping").then((a) => setCluster(a.cluster || ""), () => {});
  };
  useEffect(login, []);

  const job = /^#\/job\/([0-9_+]+)$/.exec(hash);
  const page = locked ? html`<${Login} why=${locked} done=${() => { setLocked(""); login(); location.reload(); }} />`
    : job ? html`<${Job} key=${job[1]} id=${job[1]} />`
    : hash === "#/cluster" ? html`<${Cluster} me=${me} />`
    : hash === "#/submit" ? html`<${Submit} />`
    : html`<${Queue} me=${me} />`;
  return html`<a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById("main").focus(); }}>Skip to the page</a>
    <header><strong>Spur</strong><span class="soft">${cluster}</span>
      <nav aria-label="Pages">${pages.map((p) => html`<a href=${p.hash} aria-current=${hash === p.hash ? "page" : undefined}>${p.name}</a>`)}</nav>
      <span class="soft">${me ? me.user : ""}</span>
      ${token() && html`<button onClick=${() => { setToken(""); location.reload(); }}>Log out</button>`}
      <button onClick=${() => setLook(look === "dark" ? "light" : "dark")}>${look === "dark" ? "Light" : "Dark"}</button>
    </header>
    <main id="main" tabindex="-1">${page}</main>`;
}

render(html`<${App} />`, document.getElementById("app"));
