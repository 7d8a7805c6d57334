// SPDX-License-Identifier: BSL-1.0
#include <turnstile/detail/util/random.hpp>

#include <random>

namespace turnstile::inline v0_1::detail {
namespace {

std::uint64_t read_random_device()
{
    std::random_device device;
    return (std::uint64_t(device()) << 32) | device();
}

} // namespace

std::uint64_t random_seed()
{
    thread_local random_source seeds(read_random_device());
    return seeds.next();
}

} // namespace turnstile::inline v0_1::detail
