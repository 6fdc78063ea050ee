"""Write the table of rules into README.md, from the rules themselves.

python docs/readme_rules.py
"""

from pathlib import Path

from gradwright.doctor.rules import RULES

README = Path(__file__).resolve().parents[1] / "README.md"
START, END = "<!-- rules -->\n", "<!-- end of rules -->\n"


def table() -> str:
    """The rules by code, as a Markdown table."""
    rows = [
        f"| {rule.code} | {rule.name.replace('-', ' ')} | {rule.summary} |"
        for rule in sorted(RULES, key=lambda rule: rule.code)
    ]
    return "\n".join(["| Code | Name | What is wrong |", "|---|---|---|", *rows]) + "\n"


def with_table(text: str) -> str:
    """`text` with the table between the two marks."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{table()}{END}{after}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {len(RULES)} rules into {README.name}")
