// The abilities of the terminal behind standard output.
#pragma once

namespace tessera::viz {

enum class ColourDepth { none, indexed256, truecolour };

// Also correct under mpirun, where isatty is true for output to a file as well.
bool stdout_ends_at_terminal();

// none unless standard output ends at a terminal, NO_COLOR (no-color.org) is unset or empty, and TERM is not
// "dumb".
ColourDepth stdout_colour_depth();

}  // namespace tessera::viz
