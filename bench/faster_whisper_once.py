#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transcribes files with faster-whisper and prints texts and times as JSON, for compare_asr.py.

  PYTHON_WITH_FASTER_WHISPER bench/faster_whisper_once.py --model CT2_FOLDER --kind int8 --beam 5 --threads 1 --clip en a.wav

`call_s` is the transcription alone (reading the file, features, encoder, decoder), without interpreter, imports and loading.
"""
import argparse
import json
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--kind", required=True, help="CTranslate2's compute type")
    parser.add_argument("--beam", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--clip", nargs=2, action="append", required=True, metavar=("LANGUAGE", "FILE"))
    options = parser.parse_args()

    import ctranslate2
    import faster_whisper

    ctranslate2.set_random_seed(0)
    model = faster_whisper.WhisperModel(options.model, device="cpu", compute_type=options.kind, cpu_threads=options.threads,
                                        num_workers=1, local_files_only=True)
    clips = []
    for language, file in options.clip:
        start = time.perf_counter()
        try:
            segments, _ = model.transcribe(file, language=language, beam_size=options.beam, best_of=options.beam)
            text = "".join(segment.text for segment in segments)
        except Exception as error:  # pylint: disable=broad-except  # PyAV's errors have no common base but this
            clips.append({"file": file, "error": f"{type(error).__name__}: {error}"})
            continue
        clips.append({"file": file, "text": text.strip(), "call_s": time.perf_counter() - start})
    version = f"faster-whisper {faster_whisper.__version__}, ctranslate2 {ctranslate2.__version__}"
    json.dump({"version": version, "clips": clips}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
