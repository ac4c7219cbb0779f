"""The files of the theme that Debian's Furo leaves unbundled.

Debian compiles Furo without its bundler: the style sheet imports normalize.css from the root of a web server and lacks the rules for dark mode by
the reader's setting, and the script imports another one as a module, which a page does not load. Files of the same names in the site's own
_static folder take precedence over the theme's. Furo of PyPI is bundled, and stays as it is.
"""
import pathlib
import re

NORMALIZE = pathlib.Path("/usr/share/javascript/normalize.css/normalize.css")
IMPORT_STYLE = "@import url(/javascript/normalize.css/normalize.css);"
IMPORT_SCRIPT = 'import Gumshoe from "./gumshoe-patched.js";'


def style(text):
    """With normalize.css, and with the dark colours where the reader's system asks for them."""
    text = text.replace(IMPORT_STYLE, NORMALIZE.read_text())
    if "prefers-color-scheme" not in text:
        colours = re.search(r'body\[data-theme="dark"\] \{([^}]*)\}', text)[1]
        text += (f'\n@media not print {{ @media (prefers-color-scheme: dark) {{\n  body:not([data-theme="light"]) {{{colours}}}\n'
                 '  html body:not([data-theme="light"]) .only-light { display: none !important; }\n'
                 '  body:not([data-theme="light"]) .only-dark { display: block !important; } } }\n')
    return text


def mend(static):
    """Writes what has to be mended of the installed Furo into `static`."""
    import furo

    theirs = pathlib.Path(furo.__file__).parent / "theme/furo/static"
    css, script = theirs / "styles/furo.css", theirs / "scripts/furo.js"
    if IMPORT_STYLE in css.read_text():
        (static / "styles").mkdir(parents=True, exist_ok=True)
        (static / "styles/furo.css").write_text(style(css.read_text()))
    if IMPORT_SCRIPT in script.read_text():
        (static / "scripts").mkdir(parents=True, exist_ok=True)
        joined = (theirs / "scripts/gumshoe-patched.js").read_text() + script.read_text().replace(IMPORT_SCRIPT, "")
        (static / "scripts/furo.js").write_text(joined)
