// SPDX-License-Identifier: BSL-1.0
#include <turnstile/core/error.hpp>
#include <turnstile/core/operation.hpp>

#include <boost/system/errc.hpp>

#include <new>
#include <system_error>

namespace turnstile::inline v0_1 {

error_code failure::code() const noexcept
{
    if (!exception_)
        return code_;
    try {
        std::rethrow_exception(exception_);
    } catch (const system_error& e) {
        return e.code();
    } catch (const std::system_error& e) {
        return e.code();
    } catch (const std::bad_alloc&) {
        return boost::system::errc::make_error_code(boost::system::errc::not_enough_memory);
    } catch (...) {
        return errc::operation_failed;
    }
}

bool failure::is_cancelled() const noexcept
{
    return *this && code() == boost::system::errc::operation_canceled;
}

} // namespace turnstile::inline v0_1
