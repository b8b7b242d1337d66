# SPDX-License-Identifier: Apache-2.0
"""Tables of what bench/compare_asr.py measured: times ("kind": "asr") and errors ("kind": "asr_accuracy")."""

OURS = "consonant"


class TableError(Exception):
    """Documents that can't be put side by side."""


def markdown(columns: list, rows: list) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def is_ours(label: str) -> bool:
    return label.split()[0] == OURS


def own_and_peers(labels: list, where: str) -> tuple:
    ours = [label for label in labels if is_ours(label)]
    if len(ours) != 1 or len(labels) < 2:
        raise TableError(f"{where}: {', '.join(labels)} are not consonant once and a peer")
    return ours[0], [label for label in labels if label != ours[0]]


def is_library(label: str) -> bool:
    """A library's time is that of its call, without interpreter, imports and loading; a program's is all of it."""
    return label.startswith("faster-whisper")


def measure_of(label: str, run: dict) -> str:
    return "call_s" if is_library(label) and "call_s" in run else "wall_s"


def seconds(run: dict, name: str) -> str:
    return f"{run[name]:.2f} ({run[name + '_min']:.2f} to {run[name + '_max']:.2f})"


def ratios(result: dict) -> dict:
    """How many times as long as consonant each peer takes."""
    ours, peers = own_and_peers(list(result["engines"]), result["clip"])
    own = result["engines"][ours]
    found = {}
    for peer in peers:
        name = measure_of(peer, result["engines"][peer])
        found[peer] = result["engines"][peer][name] / own.get(name, own["wall_s"])  # like with like
    return found


def speed_columns(labels: list) -> list:
    ours, peers = own_and_peers(labels, "asr")
    columns = ["model", "clip", "threads", "beam", f"{ours}, s"]
    for peer in peers:
        columns += [f"{peer}, s", "ratio"]
    return columns + ["times real time", "peak memory, MB", "WER, %"]


def speed_row(result: dict, labels: list) -> list:
    if set(result["engines"]) != set(labels):
        raise TableError(f"{result['model']}, {result['clip']}: measured with {', '.join(result['engines'])}, not {', '.join(labels)}")
    ours, peers = own_and_peers(labels, result["clip"])
    own = result["engines"][ours]
    row = [result["model"], result["clip"], result["threads"], "greedy" if result["beam"] == 1 else result["beam"], seconds(own, "wall_s")]
    faster = ratios(result)
    for peer in peers:
        row += [seconds(result["engines"][peer], measure_of(peer, result["engines"][peer])), f"**{faster[peer]:.2f}**"]
    row.append(f"{result['seconds'] / own['wall_s']:.0f}")
    for name, form in (("peak_mb", "{:.0f}"), ("wer", "{:.1%}")):
        row.append(" / ".join(form.format(result["engines"][label][name]).rstrip("%") for label in (ours, *peers)))
    return row


def speed(document: dict) -> str:
    labels = list(document["results"][0]["engines"])
    return markdown(speed_columns(labels), [speed_row(result, labels) for result in document["results"]])


def speed_extremes(document: dict) -> str:
    """The lines where consonant is furthest ahead of its fastest peer, and least."""
    results = sorted(document["results"], key=lambda result: min(ratios(result).values()))
    labels = list(document["results"][0]["engines"])
    rows = [[name, *speed_row(result, labels)] for name, result in (("best", results[-1]), ("worst", results[0]))]
    return markdown(["", *speed_columns(labels)], rows)


def joined(documents: list) -> tuple:
    """The clips and the results of several accuracy documents, which must mean the same by a clip's name."""
    clips, results = {}, {}
    for document in documents:
        for name, clip in document["clips"].items():
            if clips.setdefault(name, clip) != clip:
                raise TableError(f"{name}: two documents have different texts for it")
        for result in document["results"]:
            key = (result["model"], result["beam"], result["engine"])
            if key in results:
                raise TableError(f"{key[2]} with {key[0]}, beam {key[1]}, is in two documents")
            results[key] = result["found"]
    return clips, results


def rate(found: dict, names: list) -> dict:
    wrong, of = (sum(found[name][field] for name in names) for field in ("edits", "units"))
    return {"edits": wrong, "units": of, "rate": wrong / of} if of else {}


def totals(documents: list) -> list:
    """One entry a model, beam and engine, over the clips that every engine could read with that model and beam."""
    clips, results = joined(documents)
    entries = []
    left_out = {clip for document in documents for clip in document.get("left_out", [])}
    for model, beam in sorted({key[:2] for key in results}, key=lambda pair: ([key[0] for key in results].index(pair[0]), pair[1])):
        found = {engine: one for (name, width, engine), one in results.items() if (name, width) == (model, beam)}
        if len({frozenset(one) - left_out for one in found.values()}) != 1:
            raise TableError(f"{model}, beam {beam}: the engines were given different clips")
        read = [clip for clip in next(iter(found.values())) if clip not in left_out and all(one[clip] for one in found.values())]
        by_word = [clip for clip in read if clips[clip]["counted"] == "words"]
        by_character = [clip for clip in read if clips[clip]["counted"] == "characters"]
        for engine in sorted(found, key=lambda label: not is_ours(label)):
            one = found[engine]
            entries.append({
                "model": model, "beam": beam, "engine": engine, "clips": len(read),
                "wer": rate(one, by_word), "cer": rate(one, by_character),
                "once": rate(one, [clip for clip in by_word if "copy_of" not in clips[clip]]),
                "unread": [clip for clip in one if one[clip] is None]})
    return entries


def share(total: dict) -> str:
    return f"{total['rate']:.1%} ({total['edits']} of {total['units']})" if total else ""


def accuracy(documents: list) -> str:
    rows = []
    for entry in totals(documents):
        rows.append([entry["model"], "greedy" if entry["beam"] == 1 else entry["beam"], entry["engine"], entry["clips"], share(entry["wer"]),
                     share(entry["once"]), share(entry["cer"]), ", ".join(entry["unread"])])
    return markdown(["model", "beam", "engine", "clips", "WER", "WER, each recording once", "CER", "can't read"], rows)


def worse_than_peers(documents: list) -> list:
    """What keeps consonant from making no more errors than the best peer under the same settings: one line each."""
    entries = totals(documents)
    worse = []
    for mine in entries:
        if not is_ours(mine["engine"]):
            continue
        peers = [entry for entry in entries if not is_ours(entry["engine"])
                 and (entry["model"], entry["beam"]) == (mine["model"], mine["beam"])]
        if not peers:
            raise TableError(f"{mine['model']}, beam {mine['beam']}: no peer to compare {mine['engine']} with")
        for name in ("wer", "cer"):
            best = min(peers, key=lambda entry: entry[name].get("edits", 0))
            if mine[name].get("edits", 0) > best[name].get("edits", 0):
                worse.append(f"{mine['engine']}, {mine['model']}, beam {mine['beam']}: {name.upper()} {share(mine[name])}, "
                             f"{best['engine']} has {share(best[name])}")
    return worse
