// The op functions for other folders and vjp rules; the public header declares the same for users.
#pragma once
#include <tessera/ops.hpp>
