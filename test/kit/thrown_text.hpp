// SPDX-License-Identifier: BSL-1.0
// The text of an exception that a function throws.
#pragma once

#include <turnstile/core/config.hpp>

#include <string>

namespace kit {

// The text of the system_error that f throws, without the message of its code.
template <class F>
std::string text_of(F f)
{
    try {
        f();
    } catch (const turnstile::system_error& e) {
        const std::string what = e.what();
        return what.substr(0, what.find(": " + e.code().message()));
    }
    return "nothing was thrown";
}

} // namespace kit
