#include "comm/collectives/pending.hpp"

#include <tessera/error.hpp>

#include <exception>
#include <string>
#include <utility>

#include "comm/collectives/pending_impl.hpp"
#include "comm/watch/failure.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {

Pending::Pending() = default;
Pending::Pending(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Pending::Pending(Pending&&) noexcept = default;

Pending& Pending::operator=(Pending&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

Pending::~Pending() {
  if (impl_ == nullptr || std::uncaught_exceptions() > 0 || failure().happened) return;  // ~Requests cancels
  try {
    wait();
  } catch (...) {  // destructors do not throw: the rank's next call reports it
    mark_failed_by_exception("while it waited for what it had started");
  }
}

bool Pending::test() {
  if (impl_ != nullptr && impl_->move_on(false)) impl_.reset();
  return impl_ == nullptr;
}

void Pending::move_on() {
  if (impl_ != nullptr && impl_->next_round) impl_->move_on(false);
}

void Pending::wait() {
  if (impl_ == nullptr) return;
  const Waiting waiting(impl_->what, impl_->requests.comm(), impl_->bytes);
  impl_->move_on(true);
  impl_.reset();
}

bool Pending::Impl::move_on(bool block) {
  if (arrived)
    while (complete_some(block)) {}
  for (;;) {
    if (block)
      requests.wait_all();
    else if (!requests.test_all())
      return false;
    if (!next_round) return true;
    std::exchange(next_round, nullptr)();
  }
}

// Takes the receives that have completed (receives are the first requests) and reports each message whose
// last piece has arrived. Returns false when no receive is open any more, or when none has completed and
// `block` is false.
bool Pending::Impl::complete_some(bool block) {
  const int receives = static_cast<int>(receive_of_request.size());
  std::vector<int> done(receive_of_request.size());
  int count = 0;
  auto* list = requests.list().data();
  if (block)
    check(mpi::Waitsome(receives, list, &count, done.data(), MPI_STATUSES_IGNORE), "MPI_Waitsome",
          requests.comm());
  else
    check(mpi::Testsome(receives, list, &count, done.data(), MPI_STATUSES_IGNORE), "MPI_Testsome",
          requests.comm());
  if (count == MPI_UNDEFINED || count == 0) return false;
  for (int i = 0; i < count; ++i) {
    const std::size_t message = receive_of_request[done[i]];
    if (--pieces_missing[message] == 0) arrived(message);
  }
  return true;
}

}  // namespace tessera::comm
