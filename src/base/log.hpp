// Messages on stderr. Results go to stdout, and only from rank 0; everything else goes through here.
#pragma once
#include <string>

#include "base/settings.hpp"

namespace tessera {

void set_log_rank(int rank,
                  int ranks);  // from then on messages of a job with several ranks start with [rank r]
bool logs(LogLevel);           // whether TESSERA_LOG lets this level through
void log(LogLevel, const std::string& message);  // one write per call, so that ranks do not mix lines
void log_once(LogLevel,
              const std::string& message);  // on rank 0 only: what would read the same on every rank

}  // namespace tessera
