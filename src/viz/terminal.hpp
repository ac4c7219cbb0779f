// What the reader of standard output can show.
#pragma once

namespace tessera::viz {

enum class ColourDepth { none, indexed256, truecolour };

// none unless standard output ends at a terminal, NO_COLOR (no-color.org) is unset or empty, and TERM is not dumb.
ColourDepth stdout_colour_depth();

}  // namespace tessera::viz
