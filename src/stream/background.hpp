// One piece of work at a time on a thread beside the program's: reading the next slab, writing the last one.
#pragma once
#include <csignal>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

namespace tessera::stream {

class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() { join(); }

  // Waits for earlier work first. Without a thread the work is done here.
  void start(std::function<void()> work) {
    wait();
    work_ = [this, work = std::move(work)] {
      try {
        work();
      } catch (...) {
        failure_ = std::current_exception();
      }
    };
    try {
      const SignalsBlocked blocked;  // they stay with the program's thread
      thread_ = std::thread(work_);
    } catch (const std::system_error&) {
      work_();
    }
  }
  // Throws what the work threw.
  void wait() {
    join();
    if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
  }

 private:
  struct SignalsBlocked {
    SignalsBlocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  };
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  std::function<void()> work_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace tessera::stream
