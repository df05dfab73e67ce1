// As much of rclcpp and ros2_control as the source of an exported controller needs.
//
// Topics and services are functions that main.cpp calls, parameters are a map, buffers
// hold one value. Nothing here has threads.
#pragma once
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace rclcpp {
using Strings = std::vector<std::string>;
using Doubles = std::vector<double>;
enum class ParameterType {
    PARAMETER_NOT_SET, PARAMETER_BOOL, PARAMETER_INTEGER, PARAMETER_DOUBLE,
    PARAMETER_STRING, PARAMETER_DOUBLE_ARRAY, PARAMETER_STRING_ARRAY
};
struct ParameterValue {
    std::variant<std::monostate, bool, int64_t, double, std::string, Doubles, Strings> value;
    ParameterValue() = default;
    template <typename T>
    ParameterValue(const T &x) : value(x) {}
    ParameterValue(int x) : value(int64_t(x)) {}
    ParameterValue(const char *x) : value(std::string(x)) {}
    ParameterType get_type() const { return ParameterType(value.index()); }
    bool operator==(const ParameterValue &other) const { return value == other.value; }
    bool operator!=(const ParameterValue &other) const { return value != other.value; }
};
inline std::string to_string(const ParameterValue &) { return "a value"; }
namespace exceptions {
struct ParameterUninitializedException : std::runtime_error {
    using runtime_error::runtime_error;
};
}  // namespace exceptions
struct Parameter {
    std::string name;
    ParameterValue value;
    const std::string &get_name() const { return name; }
    const ParameterValue &get_parameter_value() const { return value; }
    std::string value_to_string() const { return to_string(value); }
    bool as_bool() const { return std::get<bool>(value.value); }
    double as_double() const { return std::get<double>(value.value); }
    std::string as_string() const { return std::get<std::string>(value.value); }
    Doubles as_double_array() const { return std::get<Doubles>(value.value); }
    bool operator!=(const Parameter &other) const {
        return name != other.name || value != other.value;
    }
};
struct NodeOptions {
    NodeOptions &enable_logger_service(bool) { return *this; }
};
struct QoS {
    explicit QoS(int) {}
    QoS &best_effort() { return *this; }
};
struct SystemDefaultsQoS {};
struct Time {
    double seconds() const { return 100.0; }
};
struct Duration {
    double length;
    double seconds() const { return length; }
};
struct Clock {};
struct Logger {};
struct TimerBase {
    using SharedPtr = std::shared_ptr<TimerBase>;
};
struct SubscriptionBase {
    using SharedPtr = std::shared_ptr<SubscriptionBase>;
};
template <typename T>
struct Subscription : SubscriptionBase {
    using SharedPtr = std::shared_ptr<Subscription>;
    std::function<void(typename T::SharedPtr)> call;
};
template <typename T>
struct Service {
    using SharedPtr = std::shared_ptr<Service>;
    std::function<void(typename T::Request::SharedPtr, typename T::Response::SharedPtr)> call;
};
template <typename T>
struct Publisher {
    using SharedPtr = std::shared_ptr<Publisher>;
    void publish(const T &) {}
};
template <typename T, typename Topics, typename Quality>
std::shared_ptr<Publisher<T>> create_publisher(Topics, const char *, Quality) {
    return std::make_shared<Publisher<T>>();
}
}  // namespace rclcpp

#define RCLCPP_ERROR(logger, ...) (void)(logger), std::fprintf(stderr, __VA_ARGS__), std::fputc('\n', stderr)
#define RCLCPP_WARN(logger, ...) RCLCPP_ERROR(logger, __VA_ARGS__)
#define RCLCPP_WARN_THROTTLE(logger, clock, time, ...) (void)(clock), RCLCPP_ERROR(logger, __VA_ARGS__)

namespace rcl_interfaces::msg {
struct FloatingPointRange {
    double from_value, to_value;
};
struct IntegerRange {
    int64_t from_value, to_value;
    uint64_t step;
};
struct ParameterDescriptor {
    std::string description, additional_constraints;
    std::vector<FloatingPointRange> floating_point_range;
    std::vector<IntegerRange> integer_range;
};
struct SetParametersResult {
    bool successful = false;
    std::string reason;
};
}  // namespace rcl_interfaces::msg

namespace std_srvs::srv {
struct Trigger {
    struct Request {
        using SharedPtr = std::shared_ptr<Request>;
    };
    struct Response {
        using SharedPtr = std::shared_ptr<Response>;
        bool success = false;
        std::string message;
    };
};
}  // namespace std_srvs::srv

namespace trajectory_msgs::msg {
struct JointTrajectoryPoint {
    std::vector<double> positions, velocities, accelerations;
};
struct JointTrajectory {
    using SharedPtr = std::shared_ptr<JointTrajectory>;
    std::vector<std::string> joint_names;
    std::vector<JointTrajectoryPoint> points;
};
}  // namespace trajectory_msgs::msg

namespace std_msgs::msg {
struct Header {
    struct {
        int32_t sec = 0;
        uint32_t nanosec = 0;
    } stamp;
    std::string frame_id;
};
}  // namespace std_msgs::msg

namespace geometry_msgs::msg {
struct Vector3 {
    double x = 0, y = 0, z = 0, w = 0;
};
struct PoseStamped {
    using SharedPtr = std::shared_ptr<PoseStamped>;
    std_msgs::msg::Header header;
    struct {
        Vector3 position, orientation;
    } pose;
};
struct TwistStamped {
    using SharedPtr = std::shared_ptr<TwistStamped>;
    std_msgs::msg::Header header;
    struct {
        Vector3 angular, linear;
    } twist;
};
struct WrenchStamped {
    using SharedPtr = std::shared_ptr<WrenchStamped>;
    std_msgs::msg::Header header;
    struct {
        Vector3 torque, force;
    } wrench;
};
}  // namespace geometry_msgs::msg

namespace diagnostic_msgs::msg {
struct DiagnosticStatus {
    static constexpr unsigned char OK = 0, WARN = 1, ERROR = 2;
    unsigned char level = OK;
    std::string name, message, hardware_id;
};
struct DiagnosticArray {
    using SharedPtr = std::shared_ptr<DiagnosticArray>;
    struct {
        rclcpp::Time stamp;
    } header;
    std::vector<DiagnosticStatus> status;
};
}  // namespace diagnostic_msgs::msg

namespace rclcpp_lifecycle {
struct State {};
struct LifecycleNode {
    using SharedPtr = std::shared_ptr<LifecycleNode>;
    using Check = std::function<rcl_interfaces::msg::SetParametersResult(
        const std::vector<rclcpp::Parameter> &)>;
    std::map<std::string, rclcpp::ParameterValue> values, overrides;
    std::weak_ptr<Check> check;
    std::map<std::string, std::shared_ptr<void>> subscriptions;
    std::shared_ptr<void> service;

    template <typename Start, typename Descriptor>
    void declare_parameter(const std::string &name, const Start &start, const Descriptor &) {
        if constexpr (std::is_same_v<Start, rclcpp::ParameterType>) values[name] = {};
        else values[name] = start;
        if (overrides.count(name)) values[name] = overrides[name];
    }
    bool has_parameter(const std::string &name) const { return values.count(name); }
    rclcpp::Parameter get_parameter(const std::string &name) const {
        const auto &value = values.at(name);
        if (value == rclcpp::ParameterValue())
            throw rclcpp::exceptions::ParameterUninitializedException(name);
        return {name, value};
    }
    std::string set_parameter(const rclcpp::Parameter &parameter) {
        if (auto call = check.lock())
            if (auto result = (*call)({parameter}); !result.successful) return result.reason;
        values[parameter.name] = parameter.value;
        return "set";
    }
    rclcpp::Logger get_logger() const { return {}; }
    std::shared_ptr<rclcpp::Clock> get_clock() const { return std::make_shared<rclcpp::Clock>(); }
    rclcpp::Time now() const { return {}; }
    const char *get_name() const { return "controller"; }
    int get_node_topics_interface() const { return 0; }
    LifecycleNode *get_node_parameters_interface() { return this; }
    const std::map<std::string, rclcpp::ParameterValue> &get_parameter_overrides() const {
        return overrides;
    }
    std::shared_ptr<Check> add_on_set_parameters_callback(Check call) {
        auto made = std::make_shared<Check>(std::move(call));
        check = made;
        return made;
    }
    template <typename T, typename Call>
    std::shared_ptr<rclcpp::Service<T>> create_service(const char *, Call call) {
        auto made = std::make_shared<rclcpp::Service<T>>();
        made->call = call;
        service = made;
        return made;
    }
    template <typename T, typename Quality, typename Call>
    std::shared_ptr<rclcpp::Subscription<T>> create_subscription(const std::string &name, Quality,
                                                                 Call call) {
        auto made = std::make_shared<rclcpp::Subscription<T>>();
        made->call = call;
        subscriptions[name] = made;
        return made;
    }
    template <typename T>
    void send(const std::string &topic, const std::shared_ptr<T> &message) {
        std::static_pointer_cast<rclcpp::Subscription<T>>(subscriptions.at(topic))->call(message);
    }
    template <typename Time, typename Call>
    rclcpp::TimerBase::SharedPtr create_wall_timer(Time, Call) {
        return std::make_shared<rclcpp::TimerBase>();
    }
};
}  // namespace rclcpp_lifecycle

namespace realtime_tools {
template <typename T>
class RealtimeBuffer {
public:
    void initRT(const T &value) { value_ = value; }
    void writeFromNonRT(const T &value) { value_ = value; }
    T *readFromRT() { return &value_; }
    T *readFromNonRT() { return &value_; }

private:
    T value_{};
};
}  // namespace realtime_tools

namespace hardware_interface {
struct Handle {
    std::string name;
    double *place;
    const std::string &get_name() const { return name; }
    std::optional<double> get_optional() const { return *place; }
    bool set_value(double x) { return *place = x, true; }
};
struct CommandInterface {
    CommandInterface(const std::string &, const std::string &, double *) {}
};
}  // namespace hardware_interface

namespace controller_interface {
enum class CallbackReturn { SUCCESS, FAILURE, ERROR };
enum class return_type { OK, ERROR };
enum class interface_configuration_type { ALL, INDIVIDUAL, NONE };
struct InterfaceConfiguration {
    interface_configuration_type type;
    std::vector<std::string> names;
};
struct ControllerInterfaceBase {
    using State = rclcpp_lifecycle::State;
    std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node =
        std::make_shared<rclcpp_lifecycle::LifecycleNode>();
    std::vector<hardware_interface::Handle> state_interfaces_, command_interfaces_;

    virtual ~ControllerInterfaceBase() = default;
    auto get_node() const { return node; }
    unsigned get_update_rate() const { return 1000; }
    virtual rclcpp::NodeOptions define_custom_node_options() const = 0;
    virtual CallbackReturn on_init() = 0;
    virtual InterfaceConfiguration command_interface_configuration() const = 0;
    virtual InterfaceConfiguration state_interface_configuration() const = 0;
    virtual CallbackReturn on_configure(const State &) = 0;
    virtual CallbackReturn on_activate(const State &) = 0;
    virtual CallbackReturn on_deactivate(const State &) = 0;
    virtual CallbackReturn on_error(const State &) = 0;
    virtual CallbackReturn on_cleanup(const State &) = 0;
};
struct ControllerInterface : ControllerInterfaceBase {
    virtual return_type update(const rclcpp::Time &, const rclcpp::Duration &) = 0;
};
struct ChainableControllerInterface : ControllerInterfaceBase {
    std::vector<double> reference_interfaces_;

    bool is_in_chained_mode() const { return false; }
    virtual bool on_set_chained_mode(bool) = 0;
    virtual return_type update_reference_from_subscribers(const rclcpp::Time &,
                                                          const rclcpp::Duration &) = 0;
    virtual return_type update_and_write_commands(const rclcpp::Time &,
                                                  const rclcpp::Duration &) = 0;
    virtual std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() = 0;
};
}  // namespace controller_interface

#define PLUGINLIB_EXPORT_CLASS(type, base) using Exported = type;
