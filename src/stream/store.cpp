#include "stream/store.hpp"

#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/fault_point.hpp"
#include "io/hdf5/dataset.hpp"
#include "io/npy_header.hpp"

namespace tessera::stream {
namespace {

// A .npy file with all but the data; returns the data's offset.
std::int64_t prepare_npy(const std::string& call, const std::string& temporary, const Array& x) {
  io::File file(call, temporary, io::File::Mode::create);
  const std::string header = io::npy_header_text(x.shape(), x.dtype());
  file.write(header.data(), std::ssize(header), 0);
  file.resize(std::ssize(header) + x.nbytes());
  return std::ssize(header);
}

}  // namespace

StoreFormat store_format(const std::string& path, const std::string& name) {
  if (path.ends_with(".npy")) {
    if (!name.empty())
      throw ArgumentError(call_text() + ": " + quoted(path) + " holds one array, without the name " +
                          quoted(name));
    return StoreFormat::npy;
  }
  if (!path.ends_with(".h5") && !path.ends_with(".hdf5"))
    throw ArgumentError(call_text() + ": " + quoted(path) +
                        " does not end in .npy, .h5 or .hdf5, which tell the format");
  if (name.empty() || name.ends_with('/'))
    throw ArgumentError(call_text() + ": the dataset in " + quoted(path) + " needs a name: {.name = \"x\"}");
  return StoreFormat::hdf5;
}

StoredFile::StoredFile(const io::Team& team, std::string call, const std::string& path, StoreFormat format,
                       const std::string& name, const Array& x)
    : team_(team), call_(std::move(call)), writer_(team, [this](const Box& box, const std::byte* data) {
        io::write_box(*file_, dense_, box, data);
      }) {
  std::int64_t offset = 0;
  team_.once([&] {
    target_.emplace(call_, path);
    temporary_ = target_->temporary();
    offset = format == StoreFormat::npy ? prepare_npy(call_, temporary_, x)
                                        : io::prepare_hdf5_dataset(call_, temporary_, name, x);
    io::fault_point("prepared");
  });
  temporary_ = team_.from_first(temporary_);
  dense_ = {x.shape(), static_cast<std::int64_t>(itemsize(x.dtype())), team_.from_first(offset)};
  team_.together([&] { file_.emplace(call_, temporary_, io::File::Mode::write); });
}

void StoredFile::commit() {
  team_.together([&] {
    writer_.wait();
    file_->sync();
    io::fault_point("written");
  });
  team_.once([&] {
    target_->commit();
    target_.reset();
    io::fault_point("saved");
  });
}

}  // namespace tessera::stream
