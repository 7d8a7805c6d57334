// SPDX-License-Identifier: BSL-1.0
// The handles that the library gives out (locks, permits, reservations, values), as the tests of
// their lifetime see them. To enrol one, describe it with a template of the threading policy
//   static constexpr const char* name
//   static constexpr bool keeps_state    whether it refers to the object's state
//   using object                         what gives it out
//   static std::unique_ptr<object> make(const asio::any_io_executor&)
//   static auto take(object&)            a handle, at once
//   static auto wait(object&)            an awaitable: another handle, perhaps after a while
// and name the template in the list of handles.cpp.
#pragma once

#include <turnstile/core/threading.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace contract {

namespace asio = boost::asio;

// An object that gives out handles; destroying it destroys the object.
class handle_source {
public:
    virtual ~handle_source() = default;
    virtual std::shared_ptr<void> take() = 0;
    virtual asio::awaitable<std::shared_ptr<void>> wait() = 0;
};

struct handle_kind {
    std::string name;
    bool keeps_state;
    std::function<std::shared_ptr<handle_source>(const asio::any_io_executor&)> make;
};

template <class Kind>
class source_of final : public handle_source {
public:
    explicit source_of(const asio::any_io_executor& executor) : object_(Kind::make(executor)) {}

    std::shared_ptr<void> take() override { return erase(Kind::take(*object_)); }
    asio::awaitable<std::shared_ptr<void>> wait() override
    {
        auto handle = co_await Kind::wait(*object_); // after this the source may be gone
        co_return erase(std::move(handle));
    }

private:
    template <class Handle>
    static std::shared_ptr<void> erase(Handle handle)
    {
        return std::make_shared<Handle>(std::move(handle));
    }

    std::unique_ptr<typename Kind::object> object_;
};

template <template <class> class... Kinds>
std::vector<handle_kind> handle_kinds()
{
    std::vector<handle_kind> all;
    const auto add = [&]<class Kind>(const char* policy, std::type_identity<Kind>) {
        all.push_back({std::string(Kind::name) + policy, Kind::keeps_state,
                       [](const asio::any_io_executor& executor) {
                           return std::make_shared<source_of<Kind>>(executor);
                       }});
    };
    const auto add_both = [&]<template <class> class Kind>(auto tag) {
        (void)tag;
        add("", std::type_identity<Kind<turnstile::thread_safe>>());
        add(" (local)", std::type_identity<Kind<turnstile::strand_confined>>());
    };
    (add_both.template operator()<Kinds>(0), ...);
    return all;
}

} // namespace contract
