// Messages on stderr. Results go to stdout, from rank 0 only; all other output goes through here.
#pragma once
#include <string>

#include "base/settings.hpp"

namespace tessera {

void set_log_rank(int rank,
                  int ranks);  // messages of a job with several ranks then start with [rank r]
bool logs(LogLevel);           // whether TESSERA_LOG enables this level
void log(LogLevel, const std::string& message);  // one write per call, so that ranks do not mix lines
void log_once(LogLevel,
              const std::string& message);  // on rank 0 only: for messages that are the same on every rank

}  // namespace tessera
