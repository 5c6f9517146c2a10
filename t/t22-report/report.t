#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# spur report --html: one page that needs nothing else, with the numbers of the history and names that cannot do harm.
. "$(dirname "$0")/../lib.sh"
cat >"$T/conf" <<'END'
[accounting]
rates = "cpu=3600"
END
cluster_up --nodes 1 --cpus 4 --gpus h100:2 --conf "$T/conf"
a=$(submit -A '<b>&"evil' -n 2 --gpus 1 -o /dev/null --wrap 'sleep 2')
ok "a job ends" wait_for 30 job_is "$a" COMPLETED
page=$T/out.html
written() { spur report --html "$page" --since 2days && grep -q h100 "$page"; }
ok "the page is written" wait_for 30 written
ok "it is well formed" python3 - "$page" <<'END'
import html.parser, sys
class Check(html.parser.HTMLParser):
    open, void = [], {"meta", "rect", "line"}
    def handle_starttag(self, tag, attrs):
        if tag not in self.void or self.get_starttag_text().rstrip().endswith("/>") is False and tag == "rect":
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "href", "onload", "onclick"), (tag, name)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag
check = Check()
check.feed(open(sys.argv[1]).read())
assert not check.open, check.open
END
unlike "and asks for nothing elsewhere" "$(cat "$page")" '(src=|href=|@import|url\(|https?://|<script)'
unlike "names are escaped" "$(cat "$page")" '<b>'
like "but shown" "$(cat "$page")" '&lt;b&gt;&amp;&quot;evil'
for title in 'Use by account' 'Use by user' 'Use by GPU type' 'Waiting time' 'What the cluster did' 'Cost by account'; do
    like "$title" "$(cat "$page")" "<h2>$title</h2>"
done
seconds=$(sacct -n -P -X -j "$a" -o Start,End | { IFS='|' read -r s e; echo $(($(date -d "$e" +%s) - $(date -d "$s" +%s))); })
like "cost: a CPU costs one a second" "$(cat "$page")" "<td>$((2 * seconds)).00</td>"
run spur report
like "where to" "$code:$err" "^1:.*--html FILE"
run spur report --html "$T/none/x.html"
like "a folder that is not there" "$code:$err" "^1:.*none/x.html"
run spur report --html "$page" --since tomorrowish
like "a time that is not one" "$code:$err" "^1:.*tomorrowish"
done_testing
