// A participant with DDS Security on Fast DDS, which shares no code with CycloneDDS: `make test-features` builds it for
// ../../dds_security.rs.
//
//     on-fastdds publish|subscribe DOMAIN ENCLAVE TOPIC [TEXT...]
//
// It is on the loopback interface only. `ENCLAVE` is the folder with the six files of DDS Security; without them (`-`) it
// does not use it. To publish, it waits for a subscriber and sends each text; to subscribe, it prints each text. It ends
// when its standard input does, or after two minutes.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

namespace {

constexpr auto LIMIT = std::chrono::seconds(120);

// The type of strings as ROS 2 has it, in little-endian CDR.
class TextType : public TopicDataType {
public:
    TextType() {
        setName("std_msgs::msg::dds_::String_");
        m_typeSize = 4096;
        m_isGetKeyDefined = false;
    }

    bool serialize(void* data, SerializedPayload_t* payload) override {
        const auto& text = *static_cast<std::string*>(data);
        const auto length = static_cast<uint32_t>(text.size() + 1);
        const uint8_t header[4] = {0, 1, 0, 0};
        payload->length = 8 + length;
        payload->encapsulation = CDR_LE;
        std::memcpy(payload->data, header, 4);
        std::memcpy(payload->data + 4, &length, 4);
        std::memcpy(payload->data + 8, text.c_str(), length);
        return true;
    }

    bool deserialize(SerializedPayload_t* payload, void* data) override {
        uint32_t length = 0;
        if (payload->length < 9) return false;
        std::memcpy(&length, payload->data + 4, 4);
        if (length == 0 || length > payload->length - 8) return false;
        static_cast<std::string*>(data)->assign(reinterpret_cast<char*>(payload->data + 8), length - 1);
        return true;
    }

    std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
        return [data] { return static_cast<uint32_t>(9 + static_cast<std::string*>(data)->size()); };
    }

    void* createData() override { return new std::string; }
    void deleteData(void* data) override { delete static_cast<std::string*>(data); }
    bool getKey(void*, InstanceHandle_t*, bool) override { return false; }
};

class Printing : public DataReaderListener {
    void on_data_available(DataReader* reader) override {
        std::string text;
        SampleInfo info;
        while (reader->take_next_sample(&text, &info) == ReturnCode_t::RETCODE_OK) {
            if (info.valid_data) std::cout << text << std::endl;
        }
    }

    void on_subscription_matched(DataReader*, const SubscriptionMatchedStatus& status) override {
        if (status.current_count_change > 0) std::cout << "matched" << std::endl;
    }
};

class Matching : public DataWriterListener {
public:
    std::atomic<int> subscribers{0};

private:
    void on_publication_matched(DataWriter*, const PublicationMatchedStatus& status) override {
        subscribers = status.current_count;
    }
};

DomainParticipantQos participant_qos(const std::string& enclave) {
    DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
    auto transport = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    transport->interfaceWhiteList.push_back("127.0.0.1");
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(transport);
    if (enclave == "-") return qos;
    auto& properties = qos.properties().properties();
    const auto file = [&](const char* name) { return "file://" + enclave + "/" + name; };
    const std::string auth = "dds.sec.auth.builtin.PKI-DH.", access = "dds.sec.access.builtin.Access-Permissions.";
    properties.emplace_back("dds.sec.auth.plugin", "builtin.PKI-DH");
    properties.emplace_back(auth + "identity_ca", file("identity_ca.cert.pem"));
    properties.emplace_back(auth + "identity_certificate", file("cert.pem"));
    properties.emplace_back(auth + "private_key", file("key.pem"));
    properties.emplace_back("dds.sec.access.plugin", "builtin.Access-Permissions");
    properties.emplace_back(access + "permissions_ca", file("permissions_ca.cert.pem"));
    properties.emplace_back(access + "governance", file("governance.p7s"));
    properties.emplace_back(access + "permissions", file("permissions.p7s"));
    properties.emplace_back("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
    return qos;
}

[[noreturn]] void fail(const char* what) {
    std::cerr << "no " << what << std::endl;
    std::_Exit(1);
}

} // namespace

int main(int count, char** arguments) {
    if (count < 5) fail("arguments");
    const bool publishes = std::string(arguments[1]) == "publish";
    auto* participant = DomainParticipantFactory::get_instance()->create_participant(
        static_cast<uint32_t>(std::stoul(arguments[2])), participant_qos(arguments[3]));
    if (participant == nullptr) fail("participant");
    TypeSupport type(new TextType);
    type.register_type(participant);
    auto* topic = participant->create_topic(arguments[4], type.get_type_name(), TOPIC_QOS_DEFAULT);
    if (topic == nullptr) fail("topic");
    // After two minutes it is over, whatever happens.
    std::thread([] {
        std::this_thread::sleep_for(LIMIT);
        std::_Exit(2);
    }).detach();
    Printing printing;
    Matching matching;
    if (publishes) {
        DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.history().kind = KEEP_ALL_HISTORY_QOS;
        auto* publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
        auto* writer = publisher->create_datawriter(topic, qos, &matching);
        if (writer == nullptr) fail("writer");
        std::cout << "ready" << std::endl;
        while (matching.subscribers == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        for (int i = 5; i < count; ++i) {
            std::string text = arguments[i];
            writer->write(&text);
        }
        writer->wait_for_acknowledgments({60, 0});
        std::cout << "sent" << std::endl;
    } else {
        DataReaderQos qos = DATAREADER_QOS_DEFAULT;
        qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
        qos.history().kind = KEEP_ALL_HISTORY_QOS;
        auto* subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
        if (subscriber->create_datareader(topic, qos, &printing) == nullptr) fail("reader");
        std::cout << "ready" << std::endl;
    }
    for (std::string line; std::getline(std::cin, line);) {
    }
    participant->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant);
    return 0;
}
