// The op functions that other rooms and vjp rules call; the public header declares the same for users.
#pragma once
#include <tessera/ops.hpp>
