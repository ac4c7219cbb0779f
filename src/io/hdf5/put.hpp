// One write or append of a writer, from the agreement to the bytes in the file.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/file.hpp"
#include "io/hdf5/places.hpp"
#include "io/team.hpp"

namespace tessera::io {

// Runs `work` on the first rank, the only one that calls the library.
template <class Work> void once_quietly(const Team& team, Work work) {
  team.once([&] {
    const Quiet quiet;
    work();
  });
}

class Put {
 public:
  // `file` is open on the first rank; `own` is this rank's descriptor of the file `temporary`, opened on
  // demand.
  Put(const Team&, Hdf5Source, hid_t file, std::optional<File>& own, const std::string& temporary);

  // Called on all ranks, in the order plan, make, data. The dataset's existing or new storage plan.
  Hdf5Chunks plan(const Array& x, const Hdf5DatasetOptions&, bool grows);
  // Makes room for x in the dataset.
  void make(const Array& x, const Hdf5Chunks&, bool grows);
  // Writes `rows` from row first_row of the dataset on. Returns the end of its last byte in the file.
  std::int64_t data(const Array& rows, std::int64_t first_row, const Hdf5Chunks&);

 private:
  using Numbers = std::vector<std::int64_t>;
  File& own_file();
  std::int64_t dense(const Array& x);
  std::int64_t in_parts(const Array& rows, std::int64_t first_row, const std::vector<Chunk>&,
                        const Hdf5Chunks&);
  std::int64_t compressed(const Array& rows, const std::vector<Chunk>&, const Hdf5Chunks&);
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
