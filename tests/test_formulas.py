"""Formulas: which of them say the same, and that no text breaks or slows the comparison."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prill.answers.grammar import Unreadable, read
from prill.answers.replies import fold
from prill.answers.sameness import equivalent
from prill.answers.values import Worthless, approx, precision, worth

SAME = r"""
\frac12 = 0.5 = 1/2 = \tfrac{1}{2} = \frac{2}{4} = ½ = .5
1\frac12 = \frac{3}{2} = 1 1/2 = 1.5
3\frac{7}{2} = \frac{21}{2}
0.\overline{3} = \frac{1}{3}
\sqrt{8} = 2\sqrt{2} = 2\sqrt2
\frac{\sqrt2}{2} = \frac{1}{\sqrt{2}} = \sqrt{\frac12}
\sqrt{2}+\sqrt{3} = \sqrt{5+2\sqrt{6}}
10^{6} = 10^6 = 1,000,000 = 1\,000\,000 = 1{,}000{,}000
1.5\times10^{3} = 1500 = 1.5 × 10^3
(x+1)^2 = x^2+2x+1 = x² + 2x + 1
6-5i = -5i+6
e^{i\pi} = -1
\log_2 8 = 3 = \sqrt[3]{27}
\sin^2 x+\cos^2 x = 1
\sin(2x) = 2\sin x\cos x
|x| = \sqrt{x^2}
-2*pi = -2\pi
35\text{ cm}^2 = 35 cm = 35\,\mathrm{cm} = 35 = \$35 = 35\% = 35^\circ = 35.
\left( 3, \frac{\pi}{2} \right) = (3,\frac\pi2)
\left\{1,2,3\right\} = \{3, 2, 1\}
\pm 3 = 3, -3
\pm 3 = -3, 3
(-\infty,0)\cup(0,\infty) = (0,\infty) \cup (-\infty,0)
\begin{pmatrix}1\\2\end{pmatrix} = \begin{bmatrix} 1 \\ \frac{4}{2} \end{bmatrix}
\text{even} = even = \textbf{Even}
\text{(A)} = A = (A)
21, 36, \text{ and } 82 = 21,36,82
\emptyset = \varnothing = \{\}
1010_2 = 1010_{2}
\binom{5}{2} = 10 = \lfloor 10.5 \rfloor
\lceil 10.5 \rceil = 11
\sqrt{-4} = 2i = 2 \cdot i
\sqrt[3]{-8} = -2 = 2 \cdot -1
4^{0.5} = 2 = 4^{\frac12}
5! = 120
|3+4i| = 5 = \abs{-5}
\exp 1 = e
\tan x = \frac{\sin x}{\cos x} = \frac{1}{\cot x}
\sec x = \frac{1}{\cos x}
\csc x = \frac{1}{\sin x}
\cosh^2 x-\sinh^2 x = 1
\tanh x = \frac{\sinh x}{\cosh x}
\arcsin 1 = \frac{\pi}{2} = \sin^{-1} 1 = \arccos 0
\arcsin \frac12 = \frac{\pi}{6} = \frac{\pi}{2}-\arccos \frac12
60\text{ km}/\text{h} = 60
\begin{pmatrix}1&2\\3&4\end{pmatrix} = \begin{bmatrix} 1 & 2 \\ 3 & \frac{8}{2} \end{bmatrix}
x_{12}+1 = 1+x_{12}
\mathbf{x}+1 = 1+x
""".strip().splitlines()
OTHER = r"""
\frac{9}{256} = \frac{9}{25}
\frac{1}{2^{98}} = \frac{1}{2^{99}}
10^{20}+1 = 10^{20}
\frac{\pi}{2} = 1.5707963267948966
1+\frac{1}{e} = 1-\frac{1}{e}
4 = 4\sqrt{2}
12:00 = 1:00
\pm 2021 = 2021
(2,1) = (1,2)
1,2 = 2,1
1,2,3 = 1,2
[2,5) = [2,5]
(1,2) = [1,2]
\{1,2\} = \{1,2,3\}
\begin{pmatrix}1\\2\end{pmatrix} = \begin{pmatrix}2\\1\end{pmatrix}
q-p = p-q
\text{even} = \text{odd}
A = a
2 3 = 23
50\% = 0.5
\sqrt{x^2} = x
1010_2 = 10
\mathbb{R} = \mathbb{Z}
x \equiv 3 \pmod 5 = x \equiv 3 \pmod 7
3\text{ or more} = 3
""".strip().splitlines()


@pytest.mark.parametrize("line", SAME)
def test_what_says_the_same_is_the_same(line: str) -> None:
    """Each notation of a value is equivalent to each other one."""
    forms = [fold(form) for form in line.split(" = ")]
    assert [(one, other) for one in forms for other in forms if not equivalent(one, other)] == []


@pytest.mark.parametrize("line", OTHER)
def test_what_says_something_else_is_not_the_same(line: str) -> None:
    """Values that differ are told apart, however alike they look, in both directions."""
    one, other = line.split(" = ")
    assert not equivalent(one, other) and not equivalent(other, one)


@pytest.mark.parametrize(
    ("one", "other", "right"),
    [
        ("x = 5", "5", True),
        ("f(x)=x^2", "x^2", True),
        ("x\\in[2,5)", "[2,5)", True),
        ("x=3 \\text{ or } x=5", "3,5", True),
        ("x=5", "y=5", False),
        ("x+y=3", "3", False),
        ("y=2x+1", "2x-y+1=0", True),
        ("x>3", "3<x", True),
        ("x>3", "x\\ge 3", False),
    ],
)
def test_a_name_in_front_is_dropped_and_equations_are_compared(one: str, other: str, right: bool) -> None:
    """A letter or two before the sign say nothing; two equations are the same if one is a multiple of the other."""
    assert equivalent(one, other) is right and equivalent(other, one) is right


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\\sqrt{2}", "1.414213562373095048801688724209698078569671875376948073177"),
        ("\\ln 7", "1.945910149055313305105352743443179729637084729581861188459"),
        ("\\sin 1", "0.8414709848078965066525023216302989996225630607983710656728"),
        ("\\arctan 2", "1.107148717794090503017065460178537040070047645401432646677"),
        ("3^{\\sqrt2}", "4.728804387837414947894283340416005366839716424254840000789"),
    ],
)
def test_values_are_right_to_fifty_places(text: str, value: str) -> None:
    """Roots, logarithms, angles and powers agree with mpmath."""
    with precision():
        assert abs(approx(worth(read(text), {}))[0] - Decimal(value)) < Decimal("1e-50")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\\frac{1}{0}", "division by zero"),
        ("2^{999999}", "too long"),
        ("(-2)^{0.3}", "a fractional power"),
        ("\\sqrt{i}", "a root of a complex number"),
        ("\\sqrt[4]{-1}", "an even root"),
        ("\\ln 0", "a logarithm"),
        ("\\exp 20000", "too large"),
        ("\\sin 20000", "too large"),
        ("\\sin i", "of a complex number"),
        ("\\arcsin 2", "outside -1 to 1"),
        ("\\csc 0", "a pole"),
        ("\\binom{1000}{2}", "binom"),
        ("(1,2)", "several things"),
    ],
)
def test_what_has_no_value_says_why(text: str, why: str) -> None:
    """A pole, a root or a logarithm without a real value, and what is too large to work out, have no value by name."""
    with precision(), pytest.raises(Worthless, match=why):
        worth(read(text), {})


@given(st.fractions(max_denominator=999), st.fractions(max_denominator=999))
@settings(max_examples=100, deadline=None)
def test_fractions_are_equal_exactly_when_their_values_are(one: Fraction, other: Fraction) -> None:
    """Two fractions in LaTeX are the same if and only if they are the same number."""
    texts = [f"\\frac{{{value.numerator}}}{{{value.denominator}}}" for value in (one, other)]
    assert equivalent(*texts) is (one == other)


PIECES = (
    *("\\frac", "{", "}", "1", "2", "x", "y", "^", "_", "\\sqrt", "(", ")", "[", "]", "|", "\\pi", "e", "i", "+", "-"),
    *(
        "*",
        "/",
        ",",
        "=",
        "<",
        "\\text{a}",
        "\\sin",
        "\\ln",
        "!",
        "\\pm",
        "\\{",
        "\\}",
        "\\begin{pmatrix}",
        "&",
        "\\\\",
    ),
    *("\\end{pmatrix}", "\\overline", "9999999", "\\cup", "\\infty", ".", "'", "\\log", "\\lfloor", "^{9999}", "\\vec"),
)


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map("".join)))
@settings(max_examples=300, deadline=None)
def test_comparing_is_total_and_every_formula_equals_itself(text: str) -> None:
    """Any text can be compared, with itself to the result that it is the same unless it says nothing."""
    assert equivalent(text, text) or not any(char.isalnum() for char in text)
    assert equivalent(text, "\\frac{1}{2}") == equivalent("\\frac{1}{2}", text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "(" * 1400,
            "\\sqrt" * 280 + "2",
            "\\frac" * 280,
            "x^" * 700,
            "2^{" * 400,
            "9" * 1400,
            "|" * 1400,
            "x" * 1400,
        ),
        *(
            "(9^{3999})^{3999}",
            "\\sin x+" * 150 + "1",
            "x^{3999}" * 150,
            "1+" * 700 + "1",
            "{" * 100_000,
            "-" * 100_000,
        ),
    ],
    ids=lambda text: text[:12],
)
def test_hostile_formulas_are_compared_too(text: str) -> None:
    """Depth, length and huge powers end in a comparison of texts."""
    assert not equivalent(text, "7")


@pytest.mark.parametrize(
    "text",
    ["", "1 2", "\\begin{cases}1\\end{cases}", "a\\equiv b \\pmod 5", "1=2=3", "(", "\\begin{pmatrix}1\\end{bmatrix}",
     "5\\text{ cm} x", "\\frac{1,2}{3}", "\\sqrt .5", "\\sqrt 2.5", "||x||"],
)  # fmt: skip
def test_what_the_grammar_does_not_know_is_unreadable(text: str) -> None:
    """Nothing is guessed from a part of a formula."""
    with pytest.raises(Unreadable):
        read(text)
