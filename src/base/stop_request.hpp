// Signals that ask the job to stop. A rank never acts on one by itself, since launchers deliver them to some
// ranks only: the signal is recorded here, exchanged in the next agreement of all ranks, and known to all of
// them afterwards.
#pragma once

namespace tessera {

// Until the session ends, SIGTERM, SIGUSR1 and the first SIGINT are recorded instead of ending the process.
// Signals that the program handles or ignores itself are left alone.
void listen_for_stop();
// The signal that this rank has received; 0: none.
int stop_signal_here();
// Whether this rank has received a signal on which the ranks have not agreed yet. For any thread.
bool stop_is_not_agreed();
// The stop signal that all ranks agreed on; 0: none. The first one is kept.
int agreed_stop_signal();
void note_agreed_stop(int signal);
// Ends the request, so that the next signal is a new one: for programs that continue afterwards. To be called
// on every rank between the same two agreements.
void forget_stop();

// During its lifetime no rank is asked to save: a collective save or load is running.
class UndisturbedByStop {
 public:
  UndisturbedByStop();
  ~UndisturbedByStop();
  UndisturbedByStop(const UndisturbedByStop&) = delete;
  UndisturbedByStop& operator=(const UndisturbedByStop&) = delete;
};
bool may_be_disturbed();

}  // namespace tessera
