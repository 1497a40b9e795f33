/* html_style.c - the look of the page: one column of cards, light and dark, from phones to wide screens.
 *
 * The colours of lines and stages are those of Okabe and Ito, distinct for the colour-blind; lines also differ by
 * their marks, stages by their percentages.
 */
#include "bench/output/html_write.h"

static const char page[] =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#566072;"
    "--rule:#dde2e9;--accent:#0a5c96;--code:#f0f3f7;--bad:#a8261c;"
    "--on:#0072b2;--off:#c24e00;--auto:#00795a;--ceiling:#6b7686}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#12161c;--card:#1b212a;--ink:#e8ecf2;"
    "--soft:#a3adbb;--rule:#323b48;--accent:#7cc0f2;--code:#12161c;--bad:#ff9a8d;"
    "--on:#56b4e9;--off:#f0a030;--auto:#2fc79a;--ceiling:#98a3b3}}\n"
    "*{box-sizing:border-box}\n"
    "html{-webkit-text-size-adjust:100%}\n"
    "body{margin:0;background:var(--page);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Liberation Sans\",sans-serif}\n"
    "main{max-width:1220px;margin:0 auto;padding:28px 16px 48px}\n"
    "h1{font-size:1.55rem;line-height:1.25;margin:.1em 0 .2em;overflow-wrap:anywhere}\n"
    "h2{font-size:1.12rem;margin:0 0 .6em}\n"
    "h3{font-size:.95rem;margin:0 0 .4em;color:var(--soft);font-weight:600}\n"
    "p{margin:.5em 0}time{white-space:nowrap}\n"
    ".over,.about{color:var(--soft);font-size:.88rem;margin:0;overflow-wrap:anywhere}\n"
    ".card{background:var(--card);border:1px solid var(--rule);border-radius:10px;"
    "padding:18px 20px;margin-top:18px}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(210px,1fr));gap:14px;"
    "margin-bottom:12px}\n"
    ".tile{border-left:4px solid var(--accent);padding:2px 0 2px 14px}\n"
    ".tile b{display:block;font-size:1.7rem;line-height:1.25;font-weight:650;"
    "font-variant-numeric:tabular-nums}\n"
    ".tile b small{font-size:.95rem;font-weight:500;color:var(--soft)}\n"
    ".tile span{display:block;font-size:.88rem;color:var(--soft)}\n"
    "pre{background:var(--code);border:1px solid var(--rule);border-radius:8px;padding:12px 14px;"
    "margin:.5em 0 0;font:.84rem/1.55 ui-monospace,SFMono-Regular,\"Liberation Mono\",monospace;"
    "white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ".charts+.about{margin-top:12px}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));"
    "gap:22px 32px}\n"
    "figure{margin:0;min-width:0;max-width:560px}\n";

static const char parts[] =
    "svg.chart{display:block;width:100%;height:auto}\n"
    "svg text{font-size:12px;fill:var(--soft);font-variant-numeric:tabular-nums}\n"
    "svg .end{text-anchor:end}svg .middle{text-anchor:middle}\n"
    "svg .title{font-weight:600}\n"
    "svg .value{font-weight:700;font-size:13px;fill:var(--ink);paint-order:stroke;"
    "stroke:var(--card);stroke-width:4px;stroke-linejoin:round}\n"
    "svg .grid{stroke:var(--rule)}svg .axis{stroke:var(--soft)}\n"
    "svg .line{fill:none;stroke-width:2.2;stroke-linejoin:round}\n"
    "svg .ceiling{fill:none;stroke:var(--ceiling);stroke-width:1.8;stroke-dasharray:5 4}\n"
    ".pin-on{fill:var(--on);stroke:var(--on)}.pin-off{fill:var(--off);stroke:var(--off)}"
    ".pin-auto{fill:var(--auto);stroke:var(--auto)}\n"
    ".pin-off .line{stroke-dasharray:2 3}\n"
    ".stage-read{fill:#0072b2}.stage-decode{fill:#e69f00}.stage-convert{fill:#009e73}"
    ".stage-wait{fill:#a9b1bc}\n"
    "svg .on-read{fill:#fff}svg .on-decode,svg .on-convert,svg .on-wait{fill:#111}\n"
    "svg .on-read,svg .on-decode,svg .on-convert,svg .on-wait{font-weight:600;font-size:11.5px}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:0 0 6px;padding:0;"
    "font-size:.84rem;color:var(--soft)}\n"
    ".legend li{display:flex;align-items:center;gap:6px}\n"
    ".key{width:26px;height:14px;flex:none}\n"
    "figcaption{font-size:.84rem;color:var(--soft);margin-top:4px}\n"
    ".scroll{overflow-x:auto;margin:0 -20px;padding:0 20px}\n"
    "table{border-collapse:collapse;width:100%;font-size:.84rem;"
    "font-variant-numeric:tabular-nums}\n"
    "caption{text-align:left;color:var(--soft);padding-bottom:8px;position:sticky;left:0;"
    "max-width:calc(100vw - 80px)}\n"
    "th,td{padding:5px 7px;border-bottom:1px solid var(--rule);text-align:right;"
    "white-space:nowrap}\n"
    "thead th{font-weight:600;vertical-align:bottom;color:var(--soft)}\n"
    "thead th small{display:block;font-weight:400}\n"
    "thead .span{text-align:center;border-left:1px solid var(--rule)}\n"
    ".begin{border-left:1px solid var(--rule)}\n"
    ".word{text-align:left}\n"
    "tbody th{font-weight:600}\n"
    "tr.best{background:color-mix(in srgb,var(--accent) 11%,transparent)}\n"
    "td.error{color:var(--bad);text-align:left;white-space:normal;min-width:22em}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:5px 18px;margin:0;"
    "font-size:.88rem}\n"
    "dt{font-weight:600}dd{margin:0;color:var(--soft);overflow-wrap:anywhere}\n"
    "@media(max-width:560px){main{padding:16px 10px 32px}.card{padding:14px;border-radius:8px}"
    ".scroll{margin:0 -14px;padding:0 14px}dl{grid-template-columns:1fr;gap:0}"
    "dd{margin-bottom:8px}caption{max-width:calc(100vw - 50px)}}\n"
    "@media print{body{background:#fff}.card{break-inside:avoid;border-color:#bbb}}\n";

void bench_html_style(FILE *file)
{
    fputs("<style>\n", file);
    fputs(page, file);
    fputs(parts, file);
    fputs("</style>\n", file);
}
