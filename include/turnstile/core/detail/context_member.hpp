#pragma once

#include <turnstile/core/export.hpp>

#include <boost/asio/execution_context.hpp>
#include <boost/intrusive/list_hook.hpp>

namespace turnstile::detail {

class wait_service;

// Something that must drop its handlers before its execution context is gone. The context
// knows its members through a service, and tells each of them when it shuts down.
class TURNSTILE_EXPORT context_member
    : public boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::normal_link>> {
public:
    explicit context_member(boost::asio::execution_context& context);
    context_member(const context_member&) = delete;
    context_member& operator=(const context_member&) = delete;

protected:
    virtual ~context_member();

private:
    friend class wait_service;
    virtual void shut_down() noexcept = 0;

    wait_service* service_;
};

} // namespace turnstile::detail
