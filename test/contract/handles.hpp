// SPDX-License-Identifier: BSL-1.0
// The handles of the library (locks, permits, reservations, values) under one interface, for the
// tests of their lifetime. To enrol a handle, describe it with a template of the threading policy
//   static constexpr const char* name
//   static constexpr bool keeps_state    whether the handle refers to the object's state
//   using object                         the object that the handle comes from
//   static std::unique_ptr<object> make(const asio::any_io_executor&)
//   static auto take(object&)            a handle, at once
//   static auto wait(object&)            an awaitable of another handle, for which it may have to
//   wait
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

// An object that handles come from. Its destructor destroys the object.
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
        auto handle = co_await Kind::wait(*object_); // the source may be destroyed meanwhile
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
