import com.ibm.mq.MQGetMessageOptions;
import com.ibm.mq.MQMessage;
import com.ibm.mq.MQPutMessageOptions;
import com.ibm.mq.MQQueue;
import com.ibm.mq.MQQueueManager;
import com.ibm.mq.constants.CMQC;
import java.util.Hashtable;

/**
 * Gets messages off queue Q in units of work, and puts each on queue R: the same bytes, its MsgId as CorrelId, and the
 * property Colour with an exclamation mark. Arguments: port, messages.
 */
public class Echo {
  public static void main(String[] arguments) throws Exception {
    Hashtable<String, Object> properties = new Hashtable<>();
    properties.put(CMQC.HOST_NAME_PROPERTY, "127.0.0.1");
    properties.put(CMQC.PORT_PROPERTY, Integer.parseInt(arguments[0]));
    properties.put(CMQC.CHANNEL_PROPERTY, "C");
    properties.put(CMQC.TRANSPORT_PROPERTY, CMQC.TRANSPORT_MQSERIES_CLIENT);
    MQQueueManager manager = new MQQueueManager("QM1", properties);
    MQQueue in = manager.accessQueue("Q", CMQC.MQOO_INPUT_SHARED);
    MQQueue out = manager.accessQueue("R", CMQC.MQOO_OUTPUT);
    for (int i = 0; i < Integer.parseInt(arguments[1]); i++) {
      MQMessage got = new MQMessage();
      MQGetMessageOptions get = new MQGetMessageOptions();
      get.options = CMQC.MQGMO_SYNCPOINT | CMQC.MQGMO_WAIT | CMQC.MQGMO_PROPERTIES_IN_HANDLE;
      get.waitInterval = 30_000;
      in.get(got, get);
      byte[] data = new byte[got.getDataLength()];
      got.readFully(data);
      MQMessage sent = new MQMessage();
      sent.format = got.format;
      sent.characterSet = got.characterSet;
      sent.encoding = got.encoding;
      sent.persistence = got.persistence;
      sent.correlationId = got.messageId;
      sent.setStringProperty("Colour", got.getStringProperty("Colour") + "!");
      sent.write(data);
      MQPutMessageOptions put = new MQPutMessageOptions();
      put.options = CMQC.MQPMO_SYNCPOINT;
      out.put(sent, put);
      manager.commit();
      System.out.println(data.length);
    }
    manager.disconnect();
  }
}
