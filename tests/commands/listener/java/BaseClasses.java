import com.ibm.mq.MQException;
import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Hashtable;

/** IBM MQ classes for Java: put, get, browse, inquire, syncpoint. Arguments: port, sharing conversations. */
public class BaseClasses {
  static String text(MQMessage message) throws Exception {
    return message.readStringOfByteLength(message.getDataLength());
  }

  public static void main(String[] arguments) throws Exception {
    Hashtable<String, Object> properties = new Hashtable<>();
    properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[0]));
    properties.put(CMQC.CHANNEL_PROPERTY, "APP.SVRCONN");
    properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    MQQueueManager manager = new MQQueueManager("QM1", properties);
    System.out.println("connected");
    MQQueue output = manager.accessQueue("TEST.Q", CMQC.MQOO_OUTPUT);
    for (int i = 0; i < 4; i++) {
      MQMessage message = new MQMessage();
      message.format = CMQC.MQFMT_STRING;
      message.correlationId = new byte[] {(byte) i};
      message.writeString("hello " + i);
      if (i < 3) {
        output.put(message, new MQPutMessageOptions());
      } else {
        manager.put("TEST.Q", message, new MQPutMessageOptions());
      }
    }
    MQMessage large = new MQMessage();
    large.write(new byte[200_000]);
    large.correlationId = new byte[] {9};
    output.put(large, new MQPutMessageOptions());
    output.close();
    int options = CMQC.MQOO_INPUT_AS_Q_DEF | CMQC.MQOO_INQUIRE | CMQC.MQOO_BROWSE;
    MQQueue input = manager.accessQueue("TEST.Q", options);
    System.out.println("depth " + input.getCurrentDepth());
    MQGetMessageOptions get = new MQGetMessageOptions();
    get.matchOptions = CMQC.MQMO_MATCH_CORREL_ID;
    MQMessage message = new MQMessage();
    message.correlationId = new byte[] {9};
    input.get(message, get);
    System.out.println("large " + message.getDataLength());
    message = new MQMessage();
    message.correlationId = new byte[] {2};
    input.get(message, get);
    System.out.println("matched " + text(message));
    get.matchOptions = CMQC.MQMO_NONE;
    get.options = CMQC.MQGMO_WAIT | CMQC.MQGMO_SYNCPOINT;
    get.waitInterval = 5000;
    message = new MQMessage();
    input.get(message, get);
    System.out.println("got " + text(message));
    manager.backout();
    message = new MQMessage();
    input.get(message, get);
    System.out.println("again " + text(message) + ", backout count " + message.backoutCount);
    manager.commit();
    get.options = CMQC.MQGMO_WAIT | CMQC.MQGMO_BROWSE_FIRST;
    message = new MQMessage();
    input.get(message, get);
    System.out.println("browsed " + text(message));
    get.options = CMQC.MQGMO_NO_SYNCPOINT | CMQC.MQGMO_WAIT;
    get.waitInterval = 300;
    try {
      while (true) {
        message = new MQMessage();
        input.get(message, get);
        System.out.println("got " + text(message));
      }
    } catch (MQException e) {
      System.out.println("end " + e.reasonCode);
    }
    try {
      manager.accessQueue("NOWHERE", CMQC.MQOO_INPUT_AS_Q_DEF);
    } catch (MQException e) {
      System.out.println("unknown " + e.reasonCode);
    }
    MQQueue reply = manager.accessQueue("SYSTEM.DEFAULT.MODEL.QUEUE", CMQC.MQOO_INPUT_AS_Q_DEF, null, "MY.*", null);
    System.out.println("dynamic " + reply.getName().startsWith("MY."));
    input.close();
    manager.disconnect();
    System.out.println("done");
  }
}
