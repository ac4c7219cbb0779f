// Matrices in the files of others: the arrays that SciPy (.npz) and AnnData (HDF5, Zarr) store for one.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "io/archive/npz_archive.hpp"
#include "io/file.hpp"
#include "sparse/assemble.hpp"
#include "stream/file_source.hpp"

namespace tessera::sparse {

// An opened matrix; each rank reads parts of its arrays.
struct MatrixFile {
  std::string what;    // "'x.npz'", for errors
  std::string format;  // csr, csc, bsr or coo
  Shape shape;
  std::map<std::string, stream::FileSourcePtr> arrays;
};
// Opened on this rank; IoError if the file holds no matrix in a format that can be read.
using UnpackedMembers = std::map<std::string, std::shared_ptr<const io::File>>;
MatrixFile stored_npz(const std::string& path, const std::shared_ptr<const io::NpzArchive>&,
                      const UnpackedMembers& = {});  // other packed members are unpacked in memory
MatrixFile stored_group(const std::string& path, const std::string& group);  // "": a Zarr store
// The names of the arrays of a format; the shape as it is stored. IoError about `what` for others.
std::vector<std::string> arrays_of(const std::string& what, const std::string& format);
std::string format_of(const io::NpzArchive&);
Shape checked_shape(const std::string& what, const std::vector<std::int64_t>& extents);
// The extents of the blocks that the entries form: 1 x 1 but for bsr.
Shape checked_blocks(const MatrixFile&);
// IoError if 'indptr' falls in one of `parts` shares of the lines: the line of an entry is found by halving.
void check_share_of_ends(const MatrixFile&, std::int64_t lines, std::int64_t part, std::int64_t parts);
// The entries of one of `parts` shares, which together are all; IoError for arrays that contradict each
// other. A share of csr has the rows `own`.
LocalEntries read_share(const MatrixFile&, Range own, std::int64_t part, std::int64_t parts);

// The arrays data, indices and indptr of a matrix as it is stored, with sorted columns; csc if it is a
// transposed one. Collective.
struct CompressedArrays {
  std::string format;
  std::map<std::string, Array> arrays;
};
CompressedArrays compressed(const Csr&);

}  // namespace tessera::sparse
