// Signals that ask the job to stop. A rank never acts on one by itself, because launchers bring them to some
// ranks only: it is noted here, travels with the next agreement of all ranks, and is known to all after it.
#pragma once

namespace tessera {

// From now on SIGTERM, SIGUSR1 and the first SIGINT are noted instead of ending the process, until the
// session ends. What the program handles or ignores itself stays as it is.
void listen_for_stop();
// The signal that has come to this rank; 0: none.
int stop_signal_here();
// A signal has come to this rank, and the ranks have not agreed on it yet: for any thread.
bool stop_is_not_agreed();
// All ranks know of this one; 0: of none. The first one stays.
int agreed_stop_signal();
void note_agreed_stop(int signal);

// As long as one lives, nobody is asked to save: a save or load is under way, in which all ranks take part.
class UndisturbedByStop {
 public:
  UndisturbedByStop();
  ~UndisturbedByStop();
  UndisturbedByStop(const UndisturbedByStop&) = delete;
  UndisturbedByStop& operator=(const UndisturbedByStop&) = delete;
};
bool may_be_disturbed();

}  // namespace tessera
