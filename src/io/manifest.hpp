// The contents of a checkpoint step, and its text. Pure: nothing here opens a file.
//
//   {"body": {...}, "xxh3": sum of body}
//   body: format, byte_order, step, structure, piece_bytes;
//         leaves: shape, dtype, and the blocks, each with box, rank and its offset in that rank's file
//         files:  name, data_bytes, xxh3_of_sums
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "types/box.hpp"

namespace tessera::io::checkpoint {

constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;

struct Manifest {
  struct Block {
    Box box;
    int rank = 0;
    std::int64_t offset = 0;
  };
  struct Leaf {
    Shape shape;
    Dtype dtype;
    std::vector<Block> blocks;
  };
  struct File {
    std::int64_t data_bytes = 0;
    std::string sum_of_sums;  // 16 hexadecimal digits
  };
  int step = 0;
  std::string structure;
  std::vector<Leaf> leaves;
  std::vector<File> files;  // by rank
};

std::string rank_file(int rank);       // rank_00002.bin
std::string hex(std::uint64_t value);  // 16 digits
std::int64_t pieces_of(std::int64_t bytes);
std::int64_t file_bytes(const Manifest::File&);  // the data, and a sum per piece

std::string to_text(const Manifest&);
// Checks every field against the others: the blocks of a leaf tile it, each lies within its file, and the
// blocks in a file fill it. Throws IoError with fact and mend; the caller adds the path in front.
Manifest parse_manifest(std::string_view text);

}  // namespace tessera::io::checkpoint
