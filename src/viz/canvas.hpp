// Lines of coloured text, and their conversion to three formats.
#pragma once
#include <string>
#include <vector>

#include "viz/terminal.hpp"
#include "viz/text_layout.hpp"

namespace tessera::viz {

struct Span {
  std::string text;
  int colour = -1;  // palette entry of the background; -1 for plain text
};
using Line = std::vector<Span>;

std::vector<Line> draw(const Picture&, const TextLayout&, Form);

std::string to_plain(const std::vector<Line>&);
std::string to_ansi(const std::vector<Line>&, ColourDepth);
std::string to_html(const std::vector<Line>&);  // one <pre>
std::string escape_markup(const std::string&);  // & < > "

}  // namespace tessera::viz
