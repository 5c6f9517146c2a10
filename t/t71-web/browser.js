// SPDX-License-Identifier: Apache-2.0
// browser.js LINK - uses the web page as a person would; prints "ok NAME" or "bad NAME WHY", tab-separated
const fs = require("fs");
const { chromium } = require("playwright-core");

const say = (good, name, why) => console.log([good ? "ok" : "bad", name, String(why ?? "").replace(/\s+/g, " ")].join("\t"));

async function main(link) {
  const options = { executablePath: process.env.BROWSER };
  if (process.getuid() === 0) options.args = ["--no-sandbox"];
  const browser = await chromium.launch(options);
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(30000);
  const wrong = [];
  let question = "";
  page.on("pageerror", (e) => wrong.push(e.message));
  page.on("console", (m) => { if (/Content Security Policy/.test(m.text())) wrong.push(m.text()); });
  page.on("dialog", (d) => { question = d.message(); d.accept(); });
  const shot = (name) => (process.env.SHOTS ? page.screenshot({ path: `${process.env.SHOTS}/${name}.png` }) : null);
  const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const accessible = async (name) => {
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run());
    const serious = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
    say(!serious.length, `axe finds nothing serious: ${name}`, serious.map((v) => v.id + " " + v.nodes[0].html));
  };

  await page.goto(link);
  await page.waitForSelector("tbody tr");
  say(!page.url().includes("token"), "the token leaves the address bar", page.url());
  const text = await page.textContent("tbody");
  say(text.includes("<img src=x"), "a hostile name is only text", text);
  await accessible("queue");

  await page.click("nav >> text=Submit");
  await page.waitForSelector("form");
  await page.fill("label:has-text('Name') input", "fromweb");
  await page.fill("label:has-text('Directory') input", process.cwd());
  await page.fill("label:has-text('Command') textarea", "for i in $(seq 1 200); do echo line $i; sleep 0.2; done");
  const script = await page.inputValue("label:has-text('The script') textarea");
  say(/#SBATCH --job-name=fromweb\n/.test(script), "the form writes the script", script);
  await accessible("submit");
  await shot("submit");
  await page.click("button:has-text('Submit')");
  await page.waitForSelector("h1:has-text('RUNNING'), .note.bad");
  if (await page.locator(".note.bad").count()) throw new Error(await page.textContent(".note.bad"));
  say(true, "it is submitted and runs");
  await page.waitForFunction(() => /line 3\n/.test(document.querySelector("pre")?.textContent || ""));
  say(true, "its log is read while it is written");
  await accessible("job");
  await shot("job");
  await page.click("button:has-text('Cancel')");
  await page.waitForSelector("h1:has-text('CANCELLED')");
  say(/Cancel job [0-9]+\?/.test(question), "cancelled, after a question", question);

  await page.click("nav >> text=Cluster");
  await page.waitForSelector(".nodes li");
  say((await page.locator(".nodes li").count()) === 3, "all nodes are shown");
  say((await page.locator(".nodes li .cell").count()) === 12, "and all GPUs");
  await accessible("cluster");
  await shot("cluster");
  await page.click("text=Dark");
  await page.waitForSelector("html[data-theme=dark]");
  say(true, "dark mode");
  await accessible("dark");
  await page.click("nav >> text=Queue");
  await page.waitForSelector("tbody tr");
  await page.fill("input[type=search]", "nosuchjob");
  await page.waitForSelector("text=No job matches");
  say(true, "the filter acts as one types");
  await page.fill("input[type=search]", "");
  await shot("queue");
  say(!wrong.length, "nothing went wrong in the page", wrong.join("; "));
  await browser.close();
}

main(process.argv[2]).catch((e) => { console.error(e); process.exit(1); });
