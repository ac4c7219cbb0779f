// Attributes of objects in an HDF5 file, for the rank that has it open.
#pragma once
#include <tessera/io/hdf5_writer.hpp>

#include <map>
#include <string>

#include "io/hdf5/library.hpp"

namespace tessera::io {

void write_attribute(const Hdf5Source&, hid_t file, const std::string& name, const Hdf5Attribute&);
std::map<std::string, Hdf5Attribute> read_attributes(const Hdf5Source&, hid_t file);

}  // namespace tessera::io
