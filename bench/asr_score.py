# SPDX-License-Identifier: Apache-2.0
"""Error counts of a transcript against what was said, on text without case, punctuation and spelling of numbers."""
import re
import unicodedata

# Written without spaces between words: scored by characters (CER) instead of words (WER).
BY_CHARACTER = frozenset(("zh", "yue", "ja", "th", "lo", "km", "my"))
SAME_WORD = {"mr": "mister"}
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (10**2, "hundred"))
LONGEST_NUMBER = 12  # digits; a longer row of them is read digit by digit


def number_words(value: int) -> list:
    if value < 20:
        return [ONES[value]]
    for scale, name in SCALES:
        if value >= scale:
            rest = value % scale
            return number_words(value // scale) + [name] + (number_words(rest) if rest else [])
    return [TENS[value // 10 - 2]] + ([ONES[value % 10]] if value % 10 else [])


def spelt_out(word: str) -> list:
    if not (word.isascii() and word.isdigit()):
        return [SAME_WORD.get(word, word)]
    if len(word) > LONGEST_NUMBER or (len(word) > 1 and word[0] == "0"):
        return [ONES[int(digit)] for digit in word]
    return number_words(int(word))


def plain(text: str) -> str:
    """Lower case, letters, marks and digits alone; a hyphen parts words, an apostrophe joins them."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub("['\u2019\u02bc]", "", text)
    return "".join(sign if unicodedata.category(sign)[0] in "LMN" else " " for sign in text)


def counted(language: str) -> str:
    return "characters" if language in BY_CHARACTER else "words"


def units(text: str, language: str) -> list:
    if counted(language) == "characters":
        return list("".join(plain(text).split()))
    words = plain(text).split()
    return [part for word in words for part in spelt_out(word)] if language == "en" else words


def edits(reference: list, found: list) -> int:
    """Levenshtein's distance: the fewest insertions, deletions and replacements."""
    row = list(range(len(found) + 1))
    for place, wanted in enumerate(reference, 1):
        before, row[0] = row[0], place
        for column, unit in enumerate(found, 1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (unit != wanted))
    return row[-1]


def score(reference: str, found: str, language: str) -> dict:
    wanted = units(reference, language)
    if not wanted:
        raise ValueError(f"{reference!r}: a reference without words has no error rate")
    return {"edits": edits(wanted, units(found, language)), "units": len(wanted)}
