#include "run/replicas.hpp"

#include <string>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"

namespace tessera {
namespace {

struct Mark {  // what ranks compare of one input
  std::uint64_t block = 0, bits = 0;
  std::int64_t held = 0;
};

Mark mark_of(const ProgramValue& value, const Buffer& buffer, int me) {
  const auto& layout = value.layout;
  if (!buffer || layout.mesh().position(me) < 0) return {};
  const Box box = layout.local_box(value.type.shape, me);
  Hasher block;
  for (const auto& range : box) block.add(range.start).add(range.stop);
  const auto bytes = box_elements(box) * static_cast<std::int64_t>(itemsize(value.type.dtype));
  return {block.value(), hash_bytes(buffer.data(), static_cast<std::size_t>(bytes)), 1};
}

}  // namespace

void compare_replicas(const Executable& executable, std::span<const Buffer> inputs, int me) {
  if (settings().check < 2 || inputs.empty() || !executable.takes_part() || executable.devices().size() == 1)
    return;
  const auto& program = executable.program();
  const auto& comm = comm::group(executable.devices());
  std::vector<Mark> mine;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    mine.push_back(mark_of(program.values[program.inputs[i]], inputs[i], me));
  std::vector<Mark> all(mine.size() * comm.size());
  comm::all_gather(comm, mine.data(), static_cast<std::int64_t>(mine.size() * sizeof(Mark)), all.data());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (int r = 0; r < comm.size(); ++r)
      for (int s = 0; s < r; ++s) {
        const Mark &one = all[s * inputs.size() + i], &other = all[r * inputs.size() + i];
        if (one.held == 0 || other.held == 0 || one.block != other.block || one.bits == other.bits) continue;
        const auto& value = program.values[program.inputs[i]];
        throw comm::DisagreementError(
            "TESSERA_CHECK=2: ranks " + std::to_string(comm.device_ids()[s]) + " and " +
            std::to_string(comm.device_ids()[r]) + " hold the same block of operand " + std::to_string(i) +
            ", " + to_string(value.type) +
            ", with different values. What is replicated must be computed from equal "
            "data on all ranks: look for a value that depends on the rank, on time or on a file");
      }
}

}  // namespace tessera
