// One write or append of a writer, from what is agreed on to the bytes in the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/file.hpp"
#include "io/hdf5/places.hpp"
#include "io/team.hpp"

namespace tessera::io {

// The library speaks on the first rank alone.
template <class Work> void once_quietly(const Team& team, Work work) {
  team.once([&] {
    const Quiet quiet;
    work();
  });
}

class Put {
 public:
  // `file` is open on the first rank; `own` is this rank's way into the file `temporary`, opened when needed.
  Put(const Team&, Hdf5Source, hid_t file, std::optional<File>& own, const std::string& temporary);

  // All ranks, in this order. How the dataset is stored, or will be.
  ChunkPlan plan(const Array& x, const Hdf5DatasetOptions&, bool grows);
  // There is room for x.
  void make(const Array& x, const ChunkPlan&, bool grows);
  // `rows` begin at this row of the dataset. Gives the end of the last piece in the file.
  std::int64_t data(const Array& rows, std::int64_t first_row, const ChunkPlan&);

 private:
  using Numbers = std::vector<std::int64_t>;
  File& own_file();
  std::int64_t dense(const Array& x);
  std::int64_t in_parts(const Array& rows, std::int64_t first_row, const std::vector<Chunk>&,
                        const ChunkPlan&);
  std::int64_t compressed(const Array& rows, const std::vector<Chunk>&, const ChunkPlan&);
  void write(const std::vector<std::vector<std::byte>>& stored, std::int64_t first, const Numbers& places);

  const Team& team_;
  Hdf5Source source_;
  hid_t file_;
  std::optional<File>& own_;
  const std::string& temporary_;
  Handle dataset_;
  bool exists_ = false;
};

}  // namespace tessera::io
