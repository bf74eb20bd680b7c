"""LaTeX and plain-text formulas without their looks, and cut into tokens: rule M3 of RULES.md.

Everything here is text in, text out, linear in its input; what the tokens mean is the business of `grammar.py`.
"""

import re
from dataclasses import dataclass

# --- looks --------------------------------------------------------------------------------------------------------

ROW = "\ue000"
"""What a line break (two backslashes) is inside this module and the next."""
_DROPPED = re.compile(
    r"\\(?:left|right)(?:\.|(?![A-Za-z]))|\\(?:big|Big|bigg|Bigg)[lrm]?(?![A-Za-z])"
    r"|\\(?:displaystyle|textstyle|limits|nolimits|quad|qquad|strut)(?![A-Za-z])|\\[hv]space\*?\{[^{}]*\}"
    r"|\$|\\[()\[\]]|\\[%$]|[%€£]|\\(?:degree|euro|pounds)(?![A-Za-z])"
    r"|\^\{?\s?\\circ\s?\}?(?:\s?[CF](?![A-Za-z]))?|°[CF]?"
)
_GROUPED = re.compile(r"(?<=[0-9])(?:\{,\}|,\\!|\\[,!:; ])(?=[0-9]{3}(?![0-9]))")
_BLANK_GROUPS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?: [0-9]{3})+(?![0-9])")
_SPACES = re.compile(r"\\[,:;! ]|~|\s+")
_MIXED = re.compile(r"(?<![0-9./])([0-9]+) ([0-9]+) ?/ ?([0-9]+)(?![0-9.])")
STYLED = r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:bf|it|rm|sf|tt|normal)|boldsymbol|bm|mbox|hbox|operatorname)"


def tidy(text: str) -> str:
    """A formula without what only concerns its looks: sizes, spaces, grouped digits, degree, percent and currency
    signs, a full stop at the end."""
    text = _GROUPED.sub("", text.replace("\\\\", ROW))
    text = _SPACES.sub(" ", _DROPPED.sub("", text))
    text = _BLANK_GROUPS.sub(lambda match: match[0].replace(" ", ""), text)
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", text)
    return text.strip(" " + ROW).rstrip(" .,;:" + ROW)


_STYLES = re.compile(STYLED + r"(?![A-Za-z])|[{}]|(?<![0-9]) | (?![0-9])")


def plain(text: str) -> str:
    """A formula as bare text, to be compared letter by letter; the case of whole words does not count."""
    bare = _STYLES.sub("", tidy(text)).strip("\"'`*_")
    return bare.casefold() if re.fullmatch(r"[^\W\d_]{3,}", bare) else bare


# --- tokens -------------------------------------------------------------------------------------------------------

_TOKENS = re.compile(
    rf"(?P<text>(?P<style>{STYLED})\s*\{{(?P<inner>[^{{}}]*)\}})"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?(?:\.?\\overline\s?\{[0-9]+\})?|\.[0-9]+)"
    r"|(?P<command>\\[A-Za-z]+)|(?P<escaped>\\.)|(?P<word>[A-Za-z]{2,})|(?P<letter>[A-Za-z])"
    r"|(?P<sign>\*\*|<=|>=|!=|==|[^ ])",
    re.DOTALL,
)
_WORDS = {
    "pi": "\\pi", "sqrt": "\\sqrt", "infinity": "\\infty", "inf": "\\infty", "oo": "\\infty", "sin": "\\sin",
    "cos": "\\cos", "tan": "\\tan", "cot": "\\cot", "sec": "\\sec", "csc": "\\csc", "ln": "\\ln", "log": "\\log",
    "exp": "\\exp", "arcsin": "\\arcsin", "arccos": "\\arccos", "arctan": "\\arctan", "and": ",", "or": ",",
    "theta": "\\theta", "alpha": "\\alpha", "beta": "\\beta", "lambda": "\\lambda", "cup": "\\cup", "abs": "\\abs",
}  # fmt: skip
"""What a run of letters outside a command may mean; any other is a product of its letters."""
_UNITS = re.compile(
    r"[cmkdn]?m|ft|feet|foot|in|inch(?:es)?|miles?|mi|yd|yards?|kg|mg|lbs?|pounds?|grams?|ml|lit(?:er|re)s?"
    r"|hours?|hrs?|min(?:ute)?s?|sec(?:ond)?s?|days?|weeks?|months?|years?|mph|degrees?|percent|dollars?|cents?"
    r"|units?|square|sq|cubic|people|students|ways"
)
_UNIT_LETTERS = frozenset("msghlLNJWVAKCF")
_SAME = {
    "**": "^", "\\cdot": "*", "\\times": "*", "×": "*", "·": "*", "∙": "*", "\\ast": "*", "\\div": "/", "÷": "/",
    "\\dfrac": "\\frac", "\\tfrac": "\\frac", "\\cfrac": "\\frac", "\\dbinom": "\\binom", "\\tbinom": "\\binom",
    "π": "\\pi", "∞": "\\infty", "√": "\\sqrt", "±": "\\pm", "∪": "\\cup", "θ": "\\theta", "\\{": "{set", "\\}": "}set",
    "\\lbrace": "{set", "\\rbrace": "}set", "\\lbrack": "[", "\\rbrack": "]", "\\lparen": "(", "\\rparen": ")",
    "\\lvert": "|", "\\rvert": "|", "\\vert": "|", "\\mid": "|", "==": "=", "<=": "≤", "\\le": "≤", "\\leq": "≤",
    "\\leqslant": "≤", ">=": "≥", "\\ge": "≥", "\\geq": "≥", "\\geqslant": "≥", "\\lt": "<", "\\gt": ">", "!=": "≠",
    "\\ne": "≠", "\\neq": "≠", "\\in": "∈", "\\varnothing": "\\emptyset", "∅": "\\emptyset", "\\lor": ",", ";": ",",
    "\\land": ",", "\\langle": "<vec", "\\rangle": ">vec", "\\colon": ":",
}  # fmt: skip
"""Signs and commands under the name that the grammar knows."""


@dataclass(frozen=True)
class Token:
    """A piece of a formula: `text`, `number`, `letter`, or a sign or command under its own name."""

    kind: str
    text: str


def _styled(style: str, inner: str) -> Token:
    """Words in a formula: a separator, a letter in another type, or text (perhaps a unit)."""
    if inner.strip(" ,") in ("and", "or"):
        return Token(",", ",")
    letter = len(inner) == 1 and inner.isalpha() and "math" in style
    if letter and (style == "\\mathbf" or inner not in _UNIT_LETTERS):
        return Token("letter", inner)
    return Token("text", inner.strip(" ,"))


def tokens(text: str) -> list[Token]:
    """A tidied formula in pieces; total."""
    found: list[Token] = []
    for match in _TOKENS.finditer(text):
        kind, piece = match.lastgroup or "", match[0]
        if match["text"] is not None:
            fresh = [_styled(match["style"], match["inner"])]
        elif kind == "word" and piece not in _WORDS:
            unit = bool(_UNITS.fullmatch(piece) and found) and found[-1].kind in ("number", "text", "}", ")")
            fresh = [Token("text", piece)] if unit else [Token("letter", letter) for letter in piece]
        elif kind in ("number", "letter"):
            fresh = [Token(kind, piece)]
        else:
            name = _WORDS.get(piece, piece)
            name = _SAME.get(name, name)
            fresh = [Token(name, name)]
        if not (fresh[0].kind == "," and found and found[-1].kind == ","):
            found += fresh
    return found
